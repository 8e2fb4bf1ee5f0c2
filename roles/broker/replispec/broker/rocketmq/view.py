"""What a broker shows of itself: metrics, and whether it is ready."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from replispec.broker.rocketmq.core.groups import Groups
from replispec.broker.rocketmq.core.manager import ReplicasManager
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.pulls import Pulls
from replispec.broker.rocketmq.core.replicated import Replicated
from replispec.broker.rocketmq.core.role import Role
from replispec.broker.rocketmq.core.sends import Sends
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.metrics import OTHER, BoundedCounts, Metric, Sample
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.seeing.store import StoreView, flag
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.rocketmq import constants, metrics
from replispec.wire.rocketmq.options import BrokerOptions

ROLE: Final = "broker"
POSITIONS_SEEN_MAX: Final = 10_000
"""Positions of consumers that one look goes through."""
_NORMAL: Final = "normal"


class Parts(NamedTuple):
    """What the view reads."""

    server: RequestServer
    role: Role
    manager: ReplicasManager
    log: Replicated
    sends: Sends
    pulls: Pulls
    topics: Topics
    groups: Groups
    offsets: ConsumerOffsets


class BrokerView(StoreView):
    """Reads what the node decides by, and changes nothing."""

    def __init__(self, options: BrokerOptions, parts: Parts) -> None:
        super().__init__(ROLE, parts.server, options, parts.log.store, parts.log.retention)
        self._parts = parts

    @property
    def broker_id(self) -> int:
        """See `StoreView`."""
        return self._parts.role.broker_id

    def checks(self) -> Sequence[ReadyCheck]:
        """A broker is of use once it is registered, has a role, and its log takes what it must."""
        role, log, is_running = self._parts.role, self._parts.log, self._parts.manager.is_running
        name = _role_of(role)
        has_role = log.serves or role.is_replica
        if role.is_master and not log.serves:
            reason = "becoming master"
        else:
            reason = (
                f"{name} of masterEpoch {role.master_epoch}" if has_role else "neither master nor replica"
            )
        return (
            *super().checks(),
            ReadyCheck(
                "registered",
                is_running,
                f"with id {role.broker_id}" if is_running else "no controller has registered it yet",
            ),
            ReadyCheck("role", has_role, reason),
            self.store_check(),
        )

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """See `NodeView`."""
        role, log = self._parts.role, self._parts.log
        yield from self.log_samples(log.confirm_offset)
        yield metrics.BROKER_ROLE.of(2 * role.is_master + role.is_replica)
        yield metrics.BROKER_SERVES.of(log.serves)
        yield metrics.BROKER_MASTER_EPOCH.of(role.master_epoch)
        yield metrics.BROKER_REGISTERED.of(self._parts.manager.is_running)
        yield metrics.BROKER_SYNC_STATE_SET_SIZE.of(len(role.members))
        yield metrics.BROKER_COPYING.of(log.is_copying)
        yield from self._replicas()
        yield from self._traffic()
        yield from self._clients()

    def _replicas(self) -> Iterator[Sample]:
        feeds, end = self._parts.log.feeds(), self._parts.log.store.log.end
        yield metrics.BROKER_REPLICAS.of(len(feeds))
        for broker_id, acknowledged in sorted(feeds.items()):
            yield metrics.BROKER_REPLICA_LAG_BYTES.of(max(0, end - acknowledged), broker_id)
            yield metrics.BROKER_REPLICA_IN_SYNC.of(broker_id in self._parts.role.members, broker_id)

    def _traffic(self) -> Iterator[Sample]:
        sends, pulls = self._parts.sends, self._parts.pulls
        yield from _sent(metrics.MESSAGES_IN_TOTAL, sends.stored_by_topic)
        yield from _sent(metrics.THROUGHPUT_IN_TOTAL, sends.bytes_by_topic)
        yield from _given(metrics.MESSAGES_OUT_TOTAL, pulls.given)
        yield from _given(metrics.THROUGHPUT_OUT_TOTAL, pulls.given_bytes)
        for topic, sizes in sends.sizes_by_topic.items():
            yield metrics.MESSAGE_SIZE.of(sizes, topic, _NORMAL, flag(is_system(str(topic))))
        yield metrics.BROKER_WAITING_MESSAGES.of(sends.waiting)
        yield metrics.BROKER_WAITING_PULLS.of(pulls.waiting)
        yield metrics.BROKER_TOPICS.of(len(self._parts.topics))
        yield metrics.BROKER_QUEUES.of(len(self._parts.log.store.index.queues))

    def _clients(self) -> Iterator[Sample]:
        groups = dict(self._parts.groups.clients.sizes())
        yield metrics.BROKER_CONSUMER_GROUPS.of(len(groups))
        for group, count in groups.items():
            yield metrics.CONSUMER_CONNECTIONS.of(count, group)
        if not self._parts.log.serves:
            return
        queues, lags = self._parts.log.store.index.queues, dict[tuple[str, str], int]()
        for topic, group, number, position in islice(self._parts.offsets.positions(), POSITIONS_SEEN_MAX):
            queue = queues.get((topic, number))
            if queue is not None:
                lag = max(0, queue.end - max(position, queue.first))
                lags[group, topic] = lags.get((group, topic), 0) + lag
        for (group, topic), lag in lags.items():
            yield metrics.CONSUMER_LAG_MESSAGES.of(lag, group, topic)


def _role_of(role: Role) -> str:
    return "master" if role.is_master else "replica"


def _sent(metric: Metric, counts: BoundedCounts) -> Iterator[Sample]:
    for topic, count in counts.items():
        yield metric.of(count, topic, _NORMAL, flag(is_system(str(topic))))


def _given(metric: Metric, counts: BoundedCounts) -> Iterator[Sample]:
    for key, count in counts.items():
        topic, group = key if isinstance(key, tuple) else (OTHER, OTHER)
        is_retry = topic.startswith(constants.RETRY_TOPIC_PREFIX)
        yield metric.of(count, topic, group, flag(is_retry), flag(is_system(topic)))


def is_system(topic: str) -> bool:
    """Whether a topic is one of the system's own."""
    return topic.startswith(constants.SYSTEM_TOPIC_PREFIX)
