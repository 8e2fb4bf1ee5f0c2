"""What a metastore shows of itself: numbers and lines, and nothing of what the tree holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from replispec.metastore.zookeeper.parts import MetastoreParts
from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.version import VERSION
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.zookeeper import metrics

ROLE: Final = "metastore"


class MetastoreView:
    """Reads the node, and changes nothing; see `replispec.runtime.world.RoleView`."""

    def __init__(self, node: MetastoreParts) -> None:
        self._node = node
        self.address = ""
        """Where the node listens, once it does."""

    @property
    def write_buckets(self) -> Sequence[float]:
        """See `RoleView`."""
        return metrics.PROCESS_FSYNC_SECONDS.buckets

    @property
    def latencies(self) -> Latencies | None:
        """See `RoleView`."""
        return None

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"port": int(self.address.rpartition(":")[2] or 0)}

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        tree = self._node.tree
        return {"version": VERSION, "listens": self.address, "zxid": tree.zxid, "nodes": tree.size}

    def shared(self) -> Mapping[str, str]:
        """See `RoleView`."""
        return {"role": ROLE}

    def checks(self) -> Sequence[ReadyCheck]:
        """See `RoleView`."""
        reason = f"listens on {self.address}" if self.address else "does not listen yet"
        full = self._node.log.is_full
        room = "the log cannot be written for want of room" if full else "the log is written"
        return ReadyCheck("listens", bool(self.address), reason), ReadyCheck("log", not full, room)

    @property
    def has_picture(self) -> bool:
        """See `RoleView`."""
        return False

    def picture(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {}

    def samples(self, numbers: Numbers) -> Iterable[Sample]:
        """See `RoleView`."""
        yield metrics.BUILD_INFO.of(1, VERSION)
        yield metrics.PROCESS_START_TIME_SECONDS.of(numbers.start_ms / 1_000)
        yield metrics.PROCESS_READY.of(all(check.holds for check in self.checks()))
        yield metrics.PROCESS_EVENTS_TOTAL.of(numbers.events)
        yield metrics.PROCESS_CONNECTIONS.of(numbers.accepted, "accepted")
        yield metrics.PROCESS_CONNECTIONS.of(numbers.dialled, "dialled")
        yield metrics.PROCESS_UNSENT_BYTES.of(numbers.unsent_bytes)
        yield metrics.PROCESS_WRITES_WAITING.of(numbers.writes_waiting)
        yield metrics.PROCESS_WRITE_FAILURES_TOTAL.of(numbers.write_failures)
        yield metrics.PROCESS_FSYNC_SECONDS.of(numbers.write_seconds)
        for level, count in numbers.lines.items():
            yield metrics.PROCESS_LOG_LINES_TOTAL.of(count, level)
        yield metrics.PROCESS_LOG_LINES_LEFT_OUT_TOTAL.of(numbers.lines_left_out)
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
