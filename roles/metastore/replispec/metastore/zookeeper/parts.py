"""What a metastore consists of, as its parts see each other."""

from __future__ import annotations

from typing import Protocol

from replispec.metastore.zookeeper.core.sessions import Sessions
from replispec.metastore.zookeeper.core.tree import NodeTree
from replispec.metastore.zookeeper.core.watches import Watches
from replispec.metastore.zookeeper.log import MetastoreLog
from replispec.metastore.zookeeper.peers import ClientPeers


class MetastoreParts(Protocol):
    """The node, to be looked at."""

    @property
    def tree(self) -> NodeTree:
        """All that is applied."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Who is heard of."""
        ...

    @property
    def watches(self) -> Watches:
        """Who is to hear of what."""
        ...

    @property
    def log(self) -> MetastoreLog:
        """What is on record."""
        ...

    @property
    def peers(self) -> ClientPeers:
        """All connections."""
        ...
