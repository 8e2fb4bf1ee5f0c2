"""What a learner shows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from replispec.learner.rocketmq.core.watch import Watch
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.rocketmq.log import MessageStore, Retention
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.seeing.store import log_samples
from replispec.runtime.rocketmq.seeing.view import NodeView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.rocketmq import metrics
from replispec.wire.rocketmq.options import LearnerOptions

ROLE: Final = "learner"


class Copied(NamedTuple):
    """How far a learner is: whether a master sends it its log, the confirmOffset, and what is exported."""

    is_copying: bool
    confirmed: int
    exported: int


class LearnerView(NodeView):
    """Reads what the node decides by, and changes nothing."""

    def __init__(
        self,
        options: LearnerOptions,
        server: RequestServer,
        watch: Watch,
        store: MessageStore,
        retention: Retention,
        copied: Callable[[], Copied],
    ) -> None:
        super().__init__(ROLE, server)
        self._options = options
        self._watch = watch
        self._store = store
        self._retention = retention
        self._copied = copied

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {
            "broker_name": self._options.broker_name,
            "broker_id": self._watch.broker_id,
            "port": self.port,
        }

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        last = self._store.epochs.last
        return {
            **super().began(),
            "log_end": self._store.log.end,
            "log_epoch": 0 if last is None else last.epoch,
        }

    def shared(self) -> Mapping[str, str]:
        """See `RoleView`."""
        return {
            **super().shared(),
            "cluster": self._options.broker_cluster_name,
            "node_type": ROLE,
            "node_id": self._options.broker_name,
        }

    def checks(self) -> Sequence[ReadyCheck]:
        """A learner is of use while a master sends it its log."""
        is_copying, broken = self._copied().is_copying, self._store.log.broken
        return (
            *super().checks(),
            ReadyCheck(
                "connected", is_copying, "copies from a master" if is_copying else "no master sends its log"
            ),
            ReadyCheck("store", not broken, broken or f"{self._retention.percent} % of the disk are used"),
        )

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """See `NodeView`."""
        copied = self._copied()
        yield from log_samples(
            self._store,
            broker_id=self._watch.broker_id,
            confirmed=copied.confirmed,
            disk_percent=self._retention.percent,
            is_full=self._retention.is_full,
        )
        yield metrics.LEARNER_COPYING.of(copied.is_copying)
        yield metrics.LEARNER_EXPORTED_OFFSET.of(copied.exported)
