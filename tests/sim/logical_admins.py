"""Administrators of logical queues of RIP-21 in a simulated world: our commands, cut off at any step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from replispec.administrator.rocketmq import logical_queues
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan, Reply
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
    elsewhere; a set drained; so many written; what was left finished.

    `start`: who writes what is moved is lost, and is passed over. `leaves`: the set that is drained is to
    stop. `settles`: each queue is moved to where it is, which ends what was passed over and came back.
    """

    makes: int = 0
    moves: Sequence[tuple[int, str]] = ()
    start: int | None = None
    drains: str = ""
    leaves: bool = False
    total: int = 0
    settles: bool = False
    finishes: bool = False


@dataclass(frozen=True)
class Commands:
    """The commands, as an administrator with a clock gives them to these name servers. All raise
    NotAsWantedError."""

    name_servers: Sequence[str]
    clock: Clock

    def whole_run(self, wanted: LogicalWanted) -> Plan[LogicalTopic]:
        """What is known after all that is wanted."""
        if wanted.makes:
            topic = TopicWanted(TOPIC, wanted.makes, wanted.makes, PERM)
            yield from logical_queues.made(self.name_servers, topic, CLUSTER, self.clock())
        if wanted.finishes:
            yield from self._finished()
        for index, target in wanted.moves:
            yield from self._migrated(index, target, wanted.start)
        if wanted.settles:
            yield from self._settled()
        if wanted.drains:
            yield from self._drained(wanted.drains, leaves=wanted.leaves)
        if wanted.total:
            yield from self._numbered(wanted.total)
        return (yield from self._known())

    def _known(self) -> Plan[LogicalTopic]:
        return known(self.name_servers, TOPIC)

    def _numbered(self, total: int) -> Plan[LogicalTopic]:
        """updateTopicLogicalQueueNum."""
        return logical_queues.numbered(self.name_servers, TOPIC, CLUSTER, total, self.clock())

    def _migrated(self, index: int, target: str, start: int | None = None) -> Plan[None]:
        """migrateTopicLogicalQueue."""
        yield from moved(self.name_servers, TOPIC, index, target, start)
        yield from logical_queues.restated(self.name_servers, TOPIC, self.clock())

    def _settled(self) -> Plan[None]:
        """migrateTopicLogicalQueue of each queue to where it is."""
        found = yield from self._known()
        for index, queue in found.queues.items():
            if queue.segments and queue.segments[-1].is_writable:
                yield from self._migrated(index, queue.segments[-1].queue.broker_name)

    def _drained(self, name: str, *, leaves: bool) -> Plan[None]:
        """drainBroker."""
        found = yield from self._known()
        left = logical_queues.left_behind(found, name)
        for index, target in left.items():
            yield from self._migrated(index, target)
        if left:
            found = yield from self._known()
        for index in logical_queues.written_at(found, name):
            found = yield from self._known()
            yield from self._migrated(index, logical_queues.target_of(found, name))
        for index in logical_queues.ended_at((yield from self._known()), name):
            found = yield from self._known()
            target = logical_queues.target_of(found, name)
            yield from moved(self.name_servers, TOPIC, index, target, ended_too=True)
        yield from logical_queues.sealed_again(self.name_servers, TOPIC)
        found = yield from self._known()
        is_over = not logical_queues.read_at(found, name) and not logical_queues.written_at(found, name)
        if is_over and found.stated is not None:
            yield from logical_queues.announced(found, name, self.clock())
        elif leaves:
            raise NotAsWantedError(f"{name} may not stop yet")

    def _finished(self) -> Plan[None]:
        """What others left: a migration by migrating the same queue, whatever it was to be; of a queue that
        several made at once, by saying how many there are to be."""
        found = yield from self._known()
        if found.fault is not None and found.stated is not None:
            yield from self._numbered(found.stated.enabled.queues)
        for index, queue in found.queues.items():
            left = [each for each in queue.segments if not each.is_decided]
            if left:
                yield from self._migrated(index, left[-1].queue.broker_name)


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
    name_servers: Sequence[str] = NAME_SERVERS
    dies_behind: int | None = None
    """The code of the request behind the answer to which the next administrator ends."""

    def _plan(self, wanted: LogicalWanted, clock: Clock) -> Plan[LogicalTopic]:
        return Commands(self.name_servers, clock).whole_run(wanted)

    def _granted(self, reply: Reply, answer: Command) -> None:
        code = reply.question.code
        if code == self.dies_behind:
            self.dies_behind = None
            self.end_all()
        if code == RequestCode.SEAL_TOPIC_LOGICAL_QUEUE and answer.body:
            self.granted(LogicalQueueSegment.decode(answer.body))
        elif code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE:
            self.granted(MigrateLogicalQueue.decode(answer.body).from_queue_route_data or _NONE)
        elif code == RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_COMMIT:
            self.granted(MigrateLogicalQueue.decode(answer.body).to_queue_route_data or _NONE)


_NONE: Final = LogicalQueueSegment()
