"""All that a capture tells of partitions, sorted by them: who is who, which record was when, who said what.

A partition of a topic that was created again under its name is another one. Its rows stand in the order of
the capture, which for one broker is that of its answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.partition_observations import Appended, EpochEnd, Fetched, Hidden, Node, Ordered
from replispec.replay.events.zookeeper.nodes import How
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.kafka import paths
from replispec.wire.kafka.apache import ApacheLeaderAndIsrRequest
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.nodes import ApacheBrokerNode, ApachePartitionStateNode, ApacheTopicNode

KINDS: Final = (
    ObservationKind.NODE, ObservationKind.APPENDED, ObservationKind.FETCHED, ObservationKind.ORDERED,
    ObservationKind.EPOCH_END, ObservationKind.HIDDEN,
)  # fmt: skip
"""What this family judges."""
_SHOWN: Final = (How.READ, How.MADE, How.CHANGED)


class Record(NamedTuple):
    """The record of a partition after one of its changes, with the row that showed it first. `since`: when it
    was asked for in the order of the capture, where the change itself was seen; else when it was read."""

    zxid: int
    version: int
    epoch: int
    leader: int | None
    isr: frozenset[int]
    row: Node
    since: int

    @property
    def state(self) -> str:
        """Leader, epoch and ISR."""
        return f"leader {self.leader}, epoch {self.epoch}, ISR {sorted(self.isr)}"


class Reign(NamedTuple):
    """What a broker carried out: from when on, in which epoch, who leads, by which version of the record."""

    order: int
    epoch: int
    leader: int
    version: int


@dataclass(slots=True)
class Partition:
    """What was seen of one partition in one life of its topic, in the order of the capture."""

    group: str
    world: World
    nodes: list[Record] = field(default_factory=list)
    assigned: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    fetched: list[Fetched] = field(default_factory=list)
    ordered: list[Ordered] = field(default_factory=list)
    epoch_ends: list[EpochEnd] = field(default_factory=list)
    _reigns: dict[str, list[Reign]] | None = None
    _records: list[Record] | None = None

    @property
    def records(self) -> Sequence[Record]:
        """Its records, each change once, in the order of the store."""
        if self._records is None:
            known: dict[tuple[int, int, str], Record] = {}
            for each in self.nodes:
                known.setdefault((each.zxid, each.version, each.state), each)
            self._records = sorted(known.values(), key=lambda each: (each.zxid, each.version))
        return self._records

    @property
    def reigns(self) -> Mapping[str, Sequence[Reign]]:
        """What brokers carried out, by where they listen."""
        if self._reigns is None:
            self._reigns = defaultdict(list)
            for row in self.ordered:
                if is_taken(row):
                    told = row.epoch or 0, -1 if row.leader is None else row.leader, row.version or 0
                    self._reigns[row.address or ""].append(Reign(row.order, *told))
        return self._reigns

    def reign(self, address: str | None, order: int) -> Reign | None:
        """What the broker at an address had carried out last by then."""
        own = self.reigns.get(address or "", ())
        at = bisect_right(own, order, key=lambda each: each.order)
        return own[at - 1] if at else None

    def assigned_at(self, zxid: int) -> frozenset[int] | None:
        """The replicas that the topic's node named then."""
        known = [each for at, each in self.assigned if at <= zxid]
        return known[-1] if known else None

    @property
    def is_whole(self) -> bool:
        """Whether every change of the record was seen, from the first that was."""
        versions = [each.version for each in self.records]
        return bool(versions) and versions == list(range(versions[0], versions[0] + len(versions)))

    @property
    def unclean(self) -> Sequence[int]:
        """The epochs in which a broker leads that was not in the ISR before."""
        return [
            after.epoch
            for before, after in zip(self.records, self.records[1:], strict=False)
            if after.version == before.version + 1
            and after.leader is not None
            and after.leader not in before.isr
        ]

    def unclean_between(self, epoch: int, later: int) -> bool | None:
        """Whether one of these epochs lies behind `epoch`, up to `later`; None where that is not known."""
        if any(epoch < each <= later for each in self.unclean):
            return True
        return False if self.is_whole and self.records[0].epoch <= epoch else None


def is_taken(row: Ordered) -> bool:
    """Whether a command to have a replica was carried out."""
    return row.message == ApacheLeaderAndIsrRequest.__name__ and row.code == ErrorCode.NONE


class World:
    """All of it; `rows` in the order of the capture."""

    def __init__(self, rows: Iterable[Observation]) -> None:
        self.partitions: dict[str, Partition] = {}
        self.broker_nodes: list[Node] = []
        self.hidden: list[Hidden] = []
        self._lives: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._assigned: dict[str, list[tuple[int, ApacheTopicNode]]] = defaultdict(list)
        for row in rows:
            self._take(row)
        for each in self.partitions.values():
            each.assigned.sort()

    def id_of(self, address: str | None) -> int | None:
        """The broker that listens at an address."""
        return self._ids.get(address or "")

    @cached_property
    def addresses(self) -> Mapping[int, Sequence[str]]:
        """Where brokers listen."""
        found: dict[int, list[str]] = defaultdict(list)
        for address, broker in self._ids.items():
            found[broker].append(address)
        return found

    def _take(self, row: Observation) -> None:
        if isinstance(row, Node):
            self._take_node(row)
        elif isinstance(row, Hidden):
            self.hidden.append(row)
        elif isinstance(row, Appended | Fetched | Ordered | EpochEnd):
            self._take_row(row)

    def _take_row(self, row: Appended | Fetched | Ordered | EpochEnd) -> None:
        for each in row.brokers or ():
            self._ids[each["address"]] = each["id"]
        own = self._of(row.topic or "", row.partition or 0)
        rows: Any = {
            Appended: own.appended, Fetched: own.fetched, Ordered: own.ordered, EpochEnd: own.epoch_ends,
        }[type(row)]  # fmt: skip
        rows.append(row)

    def _of(self, topic: str, partition: int) -> Partition:
        life = self._lives.setdefault(topic, 1)
        group = f"{topic}-{partition}" + (f"#{life}" if life > 1 else "")
        if group not in self.partitions:
            own = self.partitions[group] = Partition(group, self)
            own.assigned += [*_assigned(self._assigned[topic], partition)]
        return self.partitions[group]

    def _take_node(self, row: Node) -> None:
        path = row.path or ""
        if path == paths.APACHE_BROKERS.at() or paths.APACHE_BROKER.read(path) is not None:
            self._take_broker(row, path)
        elif (at := paths.APACHE_TOPIC.read(path)) is not None:
            self._take_topic(row, str(at["topic"]))
        elif (at := paths.APACHE_STATE.read(path)) is not None and row.how in _SHOWN:
            self._take_record(row, str(at["topic"]), int(at["partition"]))

    def _take_broker(self, row: Node, path: str) -> None:
        self.broker_nodes.append(row)
        at = paths.APACHE_BROKER.read(path)
        if at is None or row.how not in _SHOWN or not row.data:
            return
        try:
            node = ApacheBrokerNode.decode(row.data)
        except RemoteProtocolError:
            return
        listeners = {each.rpartition("//")[2] for each in node.endpoints or ()}
        listeners |= {f"{node.host}:{node.port}"}
        self._ids.update(dict.fromkeys(listeners, int(at["broker_id"])))

    def _take_topic(self, row: Node, topic: str) -> None:
        if row.how == How.MADE and topic in self._lives:
            self._lives[topic] += 1
            self._assigned[topic].clear()
        if row.how not in _SHOWN or row.data is None or row.zxid is None:
            return
        self._lives.setdefault(topic, 1)
        try:
            node = ApacheTopicNode.decode(row.data)
        except RemoteProtocolError:
            return
        self._assigned[topic].append((row.zxid, node))
        for each in node.partitions or ():
            if each.isdecimal():
                self._of(topic, int(each)).assigned += _assigned([(row.zxid, node)], int(each))

    def _take_record(self, row: Node, topic: str, partition: int) -> None:
        try:
            node = ApachePartitionStateNode.decode(row.data or b"")
        except RemoteProtocolError:
            return
        told = node.leader, node.leader_epoch, node.isr
        if None in told or row.version is None or row.zxid is None:
            return
        leader = None if node.leader == -1 else node.leader
        since = row.order if row.how == How.READ or row.request_order is None else row.request_order
        isr = frozenset(node.isr or ())
        record = Record(row.zxid, row.version, node.leader_epoch or 0, leader, isr, row, since)
        self._of(topic, partition).nodes.append(record)


def _assigned(
    nodes: Iterable[tuple[int, ApacheTopicNode]], partition: int
) -> Iterator[tuple[int, frozenset[int]]]:
    """The replicas of a partition, by the numbers of changes."""
    for zxid, node in nodes:
        parts = (node.partitions, node.adding_replicas, node.removing_replicas)
        found = [each[str(partition)] for each in parts if each and str(partition) in each]
        if found:
            yield zxid, frozenset(one for each in found for one in each.broker_ids or ())
