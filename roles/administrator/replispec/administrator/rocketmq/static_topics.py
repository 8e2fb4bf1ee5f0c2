"""An administrator's runs over the brokers of a static topic, on the machine static_topic_remapping.

Source: apache/rocketmq rocketmq-all-5.4.0, MQAdminUtils.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from replispec.administrator.rocketmq.brokers import Brokers, clusters_of_all
from replispec.administrator.rocketmq.mappings import BrokerPart, Chain, Topic, part_of
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    Plan,
    Reply,
    answered,
    body_of,
    event_of,
    granted,
)
from replispec.administrator.rocketmq.remapping import MappingRun
from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.membership.machine_runner import MachineRunner, Nothing
from replispec.runtime.rocketmq.queues import STATIC_TOPICS
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import GetTopicConfigRequest, TopicOffset, TopicStatsTable
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.machines import static_topic_remapping as machine
from replispec.wire.rocketmq.machines import static_topic_remapping_wire as wire
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import LogicQueueItems, TopicConfigAndQueueMapping


@dataclass(frozen=True, slots=True)
class TopicAtBrokers:
    """A topic at all brokers, and the brokers."""

    topic: Topic
    brokers: Brokers

    def targets(self, names: Sequence[str], of_clusters: Sequence[str]) -> Sequence[str]:
        """Brokers that are named, or those of clusters. Raises NotAsWantedError."""
        found = {*names, *(each for name in of_clusters for each in self.brokers.cluster(name))}
        if not found:
            raise NotAsWantedError("Find none brokers, do nothing")
        for name in sorted(found):
            master_of(self.brokers, name)
        return sorted(found)

    def every(self, names: Iterable[str]) -> Sequence[str]:
        """All brokers of the clusters to which any of these, or of the topic's, belongs."""
        some = {*names, *self.topic.parts}
        of_clusters = (each.keys() for each in self.brokers.clusters.values())
        return sorted({name for each in of_clusters if each & some for name in each})


def master_of(brokers: Brokers, name: str) -> str:
    """Where the master of a set is. Raises NotAsWantedError."""
    address = brokers.broker_set(name).get(constants.MASTER_ID)
    if address is None:
        raise NotAsWantedError(f"Can't find addr for broker {name}: it has no master")
    return address


def known(name_servers: Sequence[str], topic: str) -> Plan[TopicAtBrokers]:
    """What every broker holds of a topic that any name server knows. Raises NotAsWantedError."""
    brokers = yield from clusters_of_all(name_servers)
    masters = {name: master_of(brokers, name) for name in sorted(brokers.sets())}
    if not masters:
        raise NotAsWantedError("The Cluster info is empty")
    header = GetTopicConfigRequest(topic=topic, lo=True)
    replies = yield [Asking(each, RequestCode.GET_TOPIC_CONFIG, header) for each in masters.values()]
    parts: dict[str, BrokerPart] = {}
    for name, reply in zip(masters, replies, strict=True):
        if answered(reply).header.code != ResponseCode.TOPIC_NOT_EXIST:
            parts[name] = part_of(name, topic, body_of(reply, TopicConfigAndQueueMapping))
    return TopicAtBrokers(Topic(topic, parts), brokers)


def carried_out(run: MappingRun, brokers: Brokers, *, force: bool = False) -> Plan[MappingRun]:
    """Set the mappings of a run; what was set. Raises NotAsWantedError: the next run goes on from there."""
    masters = {name: master_of(brokers, name) for name in run.topic.parts}
    found = yield from _Setting(run, masters, force=force).steps()
    return found


@dataclass(frozen=True, slots=True)
class _Told:
    """What one broker is told; see `local` of the machine."""

    topic: str
    read_queues: int
    write_queues: int
    perm: int
    force: bool
    bname: str
    epoch: int
    hosted: Mapping[int, LogicQueueItems]
    total: int


class _Setting:
    """One run: its methods that are named as effects of the machine carry those out."""

    def __init__(self, run: MappingRun, masters: Mapping[str, str], *, force: bool) -> None:
        self._run = run
        self._masters = masters
        self._force = force
        self._parts = dict(run.topic.parts)
        self._ends: dict[tuple[str, int], int] = {}
        self._asked: list[Asking] = []
        self._runner = MachineRunner(machine.MACHINE, self)

    def steps(self) -> Plan[MappingRun]:
        """All steps, and what was set. Raises NotAsWantedError."""
        run = self._run
        self._runner.take(machine.Begun(len(run.gains), len(run.loses), len(run.others)))
        while self._asked:
            asked, self._asked = self._asked, []
            for reply in (yield asked):
                self._take(reply)
        return replace(run, topic=Topic(run.topic.name, self._parts))

    def _take(self, reply: Reply) -> None:
        event = event_of(reply, wire.outcome_of)
        if isinstance(event, machine.EndsRead):
            self._note_ends(event.table)
        self._runner.take(event)
        if self._runner.state is machine.State.FAILED:
            granted(reply)

    def _note_ends(self, table: TopicStatsTable) -> None:
        for key, end in (table.offset_table or {}).items():
            queue = MessageQueue.decode(key.encode())
            if queue.topic == self._run.topic.name:
                self._ends[queue.broker_name or "", queue.queue_id or 0] = _end(end)

    def _of_state(self) -> Sequence[str]:
        """Who is told in this step."""
        return {
            machine.State.GAINING: self._run.gains,
            machine.State.LOSING: self._run.loses,
            machine.State.READING: self._run.loses,
            machine.State.DECIDING: self._run.gains,
            machine.State.TELLING: self._run.others,
        }[self._runner.state]

    def _ask(self, broker: str, call: Call[Header]) -> None:
        self._asked.append(Asking(self._masters[broker], RequestCode(call.code), call.header, call.body))

    # Effects of the machine

    def set_mapping(self, _event: object) -> Nothing:
        """Tell the brokers of this step what they are to hold."""
        for broker in self._of_state():
            self._ask(broker, wire.set_mapping(self._runner.variables, self._told(broker)))
        return ()

    def _told(self, broker: str) -> _Told:
        """All queues that it holds: who was told an epoch takes it again with no queue left out."""
        part = self._parts[broker]
        hosted = {index: each.items for index, each in part.chains.items()}
        name, force = self._run.topic.name, self._force
        return _Told(name, part.reads, part.writes, part.perm, force, broker, part.epoch, hosted, part.total)

    def read_ends(self, _event: object) -> Nothing:
        """Ask those that led where their queues end."""
        for broker in self._of_state():
            self._ask(broker, wire.read_ends(self._runner.variables, self._told(broker)))
        return ()

    def decide_starts(self, _event: object) -> Nothing:
        """Give every queue that moved its start, where its newest item is known."""
        decided = {index: self._decided(chain) for index, chain in self._run.chains.items()}
        for name, part in self._parts.items():
            chains = {
                index: decided[index] if each.tail.key == decided[index].tail.key else each
                for index, each in part.chains.items()
            }
            self._parts[name] = replace(part, chains=chains)
        return ()

    def _decided(self, chain: Chain) -> Chain:
        before, tail = chain.before, chain.tail
        if tail.is_decided or before is None:
            return chain
        end = self._ends.get((before.queue.broker_name, before.queue.queue_id))
        if end is None:
            raise NotAsWantedError(
                f"{before.queue.broker_name} does not say where its queue {before.queue.queue_id} ends:"
                f" logical queue {chain.queue.index} cannot begin at {tail.queue.broker_name}"
            )
        start = STATIC_TOPICS.start_after(before.logical_of(end))
        return replace(chain, queue=chain.queue.decided(tail.key, start))

    def report_done(self, _event: object) -> Nothing:
        """The mappings are set."""
        return ()

    def report_failed(self, _event: object) -> Nothing:
        """Why is told by the answer; see `_take`."""
        return ()


def _end(offset: TopicOffset) -> int:
    return offset.max_offset or 0
