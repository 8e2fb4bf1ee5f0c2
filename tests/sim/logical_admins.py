"""Administrators of logical queues of RIP-21 in a simulated world: our commands, cut off at any step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known
from replispec.administrator.rocketmq.plans import Plan, Reply
from replispec.administrator.rocketmq.topics import TopicWanted
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import Permission, RequestCode
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment, MigrateLogicalQueue
from tests.sim.queue_admins import Administrators, Clock
from tests.sim.queue_world import CLUSTER, NAME_SERVERS, TOPIC

PERM: Final = int(Permission.READ | Permission.WRITE)
SEALS: Final = frozenset(
    {RequestCode.SEAL_TOPIC_LOGICAL_QUEUE, RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE}
)


@dataclass(frozen=True)
class LogicalWanted:
    """What an administrator wants: the topic, with so many queues in each set; a logical queue written
    elsewhere; a set drained; so many written; what was left finished."""

    makes: int = 0
    moves: Sequence[tuple[int, str]] = ()
    drains: str = ""
    total: int = 0
    finishes: bool = False


def whole_run(wanted: LogicalWanted, clock: Clock) -> Plan[LogicalTopic]:
    """As the commands do it; what is known after it. Raises NotAsWantedError."""
    if wanted.makes:
        topic = TopicWanted(TOPIC, wanted.makes, wanted.makes, PERM)
        yield from logical_queues.made(NAME_SERVERS, topic, CLUSTER, clock())
    if wanted.finishes:
        yield from _finished(clock)
    for index, target in wanted.moves:
        yield from _migrated(index, target, clock)
    if wanted.drains:
        yield from _drained(wanted.drains, clock)
    if wanted.total:
        yield from logical_queues.numbered(NAME_SERVERS, TOPIC, CLUSTER, wanted.total, clock())
    return (yield from known(NAME_SERVERS, TOPIC))


def _migrated(index: int, target: str, clock: Clock) -> Plan[None]:
    """migrateTopicLogicalQueue."""
    yield from moved(NAME_SERVERS, TOPIC, index, target)
    yield from logical_queues.restated(NAME_SERVERS, TOPIC, clock())


def _drained(name: str, clock: Clock) -> Plan[None]:
    """drainBroker."""
    found = yield from known(NAME_SERVERS, TOPIC)
    for index in logical_queues.written_at(found, name):
        found = yield from known(NAME_SERVERS, TOPIC)
        yield from _migrated(index, logical_queues.target_of(found, name), clock)
    found = yield from known(NAME_SERVERS, TOPIC)
    is_over = not logical_queues.read_at(found, name) and not logical_queues.written_at(found, name)
    if is_over and found.stated is not None:
        yield from logical_queues.announced(found, name, clock())


def _finished(clock: Clock) -> Plan[None]:
    """What others left: a migration by migrating the same queue, whatever it was to be."""
    found = yield from known(NAME_SERVERS, TOPIC)
    for index, queue in found.queues.items():
        left = [each for each in queue.segments if not each.is_decided]
        if left:
            yield from _migrated(index, left[-1].queue.broker_name, clock)


class LogicalAdministrators(Administrators[LogicalWanted, LogicalTopic]):
    """Those of logical queues. `sealed` is told the set, and each segment that it said has an end."""

    changes = frozenset(
        {
            RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING,
            RequestCode.SEAL_TOPIC_LOGICAL_QUEUE,
            RequestCode.REUSE_TOPIC_LOGICAL_QUEUE,
            RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT,
            RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_NOTIFY,
        }
    )
    granted: Callable[[LogicalQueueSegment], None] = staticmethod(lambda _: None)

    def _plan(self, wanted: LogicalWanted, clock: Clock) -> Plan[LogicalTopic]:
        return whole_run(wanted, clock)

    def _granted(self, reply: Reply, answer: Command) -> None:
        code = reply.question.code
        if code == RequestCode.SEAL_TOPIC_LOGICAL_QUEUE and answer.body:
            self.granted(LogicalQueueSegment.decode(answer.body))
        elif code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE:
            self.granted(MigrateLogicalQueue.decode(answer.body).from_queue_route_data or _NONE)
        elif code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT:
            self.granted(MigrateLogicalQueue.decode(answer.body).to_queue_route_data or _NONE)


_NONE: Final = LogicalQueueSegment()
