"""What a learner shows of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from replispec.learner.rocketmq.core.watch import Watch
from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.rocketmq.log import MessageStore, Retention
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.seeing.store import StoreView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.rocketmq import metrics
from replispec.wire.rocketmq.options import LearnerOptions

ROLE: Final = "learner"


class Copied(NamedTuple):
    """How far a learner is: whether a master sends it its log, the confirmOffset, and what is exported."""

    is_copying: bool
    confirmed: int
    exported: int


class LearnerView(StoreView):
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
        super().__init__(ROLE, server, options, store, retention)
        self._watch = watch
        self._copied = copied

    @property
    def broker_id(self) -> int:
        """See `StoreView`."""
        return self._watch.broker_id

    def checks(self) -> Sequence[ReadyCheck]:
        """A learner is of use while a master sends it its log."""
        is_copying = self._copied().is_copying
        return (
            *super().checks(),
            ReadyCheck(
                "connected", is_copying, "copies from a master" if is_copying else "no master sends its log"
            ),
            self.store_check(),
        )

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """See `NodeView`."""
        copied = self._copied()
        yield from self.log_samples(copied.confirmed)
        yield metrics.LEARNER_COPYING.of(copied.is_copying)
        yield metrics.LEARNER_EXPORTED_OFFSET.of(copied.exported)
