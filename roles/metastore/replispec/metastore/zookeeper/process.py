"""What a process of the role metastore consists of, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.metastore.zookeeper.node import MetastoreNode
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Member
from replispec.wire.zookeeper.options import MetastoreOptions

METASTORE: Final = "metastore"
LOG_NAME: Final = "metastore.log.sqlite"
"""The log, in the folder of the metastore."""
SNAPSHOTS: Final = "snapshot"
"""The folder of the parts of snapshots, in it."""


def members(options: MetastoreOptions, storage: Storage, seed: int) -> Sequence[Member]:
    """The node of a metastore. Raises StorageFailed."""
    journal = storage.journal(f"{options.data_dir}/{LOG_NAME}")
    files = storage.files(f"{options.data_dir}/{SNAPSHOTS}")
    node = MetastoreNode(options, journal, files, seed)
    return (Member(METASTORE, node, Stores(files=files, journal=journal), node.view),)
