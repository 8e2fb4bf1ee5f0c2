"""What a metastore shows of itself: numbers and lines, and nothing of what the tree holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.seeing.process_view import ProcessView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.zookeeper import metrics

ROLE: Final = "metastore"


class MetastoreView(ProcessView):
    """Reads the node, and changes nothing; see `replispec.runtime.world.RoleView`."""

    def __init__(self, node: MetastoreParts) -> None:
        super().__init__(ROLE, metrics)
        self._node = node

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        tree = self._node.tree
        return {**super().began(), "zxid": tree.zxid, "nodes": tree.size}

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`."""
        full = self._node.log.is_full
        room = "the log cannot be written for want of room" if full else "the log is written"
        return (*super().checks(), ReadyCheck("log", not full, room))

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """What a metastore alone shows."""
        node = self._node
        yield metrics.METASTORE_NODES.of(node.tree.size)
        yield metrics.METASTORE_TREE_BYTES.of(node.tree.bytes)
        yield metrics.METASTORE_ZXID.of(node.tree.zxid)
        yield metrics.METASTORE_SESSIONS.of(len(node.sessions))
        yield metrics.METASTORE_WATCHES.of(node.watches.count)
        yield metrics.METASTORE_REQUESTS_TOTAL.of(node.peers.received)
        yield metrics.METASTORE_SENT_TOTAL.of(node.peers.sent)
        yield metrics.METASTORE_REFUSED_CLIENTS_TOTAL.of(node.peers.refused)
        yield metrics.METASTORE_WAITING_BYTES.of(node.peers.held_bytes)
        yield metrics.METASTORE_SNAPSHOTS_TOTAL.of(node.log.snapshots)
