"""A whole cluster of partitions in the simulated world: a metastore, two candidates, brokers, a learner,
clients and an administrator. All of them are the nodes of the roles but the last two."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import replispec.broker.kafka.process
import replispec.controller.kafka.process
import replispec.learner.kafka.process
import replispec.metastore.zookeeper.process
from replispec.runtime.kafka.batches import batches_in, records_of
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.sim import NetworkConditions, Pace, Rng, World
from replispec.runtime.sim.process import Life
from replispec.runtime.storage import Storage
from replispec.runtime.world import Event, Member
from replispec.wire.kafka import paths
from replispec.wire.kafka.nodes import ApachePartitionStateNode, ApacheTopicNode
from replispec.wire.kafka.options import (
    KafkaBrokerOptions,
    KafkaControllerOptions,
    KafkaLearnerOptions,
)
from replispec.wire.kafka.records import RecordBatchFixed
from replispec.wire.zookeeper.options import MetastoreOptions
from tests.sim.cluster_kinds import some_conditions, some_pace
from tests.sim_kafka.clients import PartitionsClient
from tests.sim_kafka.history import PartitionName, PartitionsHistory
from tests.sim_kafka.settings import PLAIN, SESSION_MS, PartitionsSettings
from tests.sim_kafka.wishes import WishingAdministrator

METASTORE: Final = "metastore"
CONTROLLERS: Final = ("controller-1", "controller-2")
LEARNER: Final = "learner"
STORE: Final = "10.0.0.1:2181"
PORT: Final = 9092
LEARNED: Final = "kept"
"""The topic that the learner exports; it is never deleted."""


class WatchedWorld(World):
    """A world in which somebody looks after each event."""

    look: Callable[[Life], None] = staticmethod(lambda _life: None)

    def deliver(self, life: Life, make: Callable[[int], Event]) -> None:
        """See `World`."""
        super().deliver(life, make)
        self.look(life)


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """What the store holds of a partition: its topic's generation and assignment, and its record, whose
    version is negative where there is none."""

    generation: int
    assigned: tuple[int, ...]
    moves: bool
    leader: int = -1
    epoch: int = -1
    isr: tuple[int, ...] = ()
    version: int = -1
    decided_by: int = 0


@dataclass
class PartitionsCluster:
    """One cluster and what is known of it. `stored` is the store as it was looked at last."""

    world: WatchedWorld
    settings: PartitionsSettings
    rng: Rng
    history: PartitionsHistory
    administrator: WishingAdministrator
    client: PartitionsClient = field(init=False)
    stored: dict[PartitionName, StoredPartition] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    going: frozenset[str] = frozenset()
    _looked: tuple[int, int] = (0, 0)

    @property
    def brokers(self) -> Mapping[int, str]:
        """The processes of the brokers, by id."""
        return {number: f"broker-{number}" for number in range(1, self.settings.brokers + 1)}

    @property
    def servers(self) -> tuple[str, ...]:
        """All processes of roles."""
        return (METASTORE, *CONTROLLERS, *self.brokers.values(), LEARNER)

    # The store

    @property
    def tree(self) -> Any:
        """The tree of the metastore; None while it does not run."""
        nodes = self.world.processes[METASTORE].nodes
        return getattr(nodes[0], "tree", None) if nodes else None

    def look_at_store(self) -> bool:
        """See what the store holds of topics; False when nothing has changed."""
        tree = self.tree
        if tree is None or self._looked == (id(tree), tree.zxid):
            return False
        self._looked = (id(tree), tree.zxid)
        found = tree.find(paths.APACHE_TOPICS.at())
        stored: dict[PartitionName, StoredPartition] = {}
        topics: dict[str, int] = {}
        for name in () if found is None else sorted(found.children):
            node = tree.find(paths.APACHE_TOPIC.at(topic=name))
            topics[name] = node.czxid
            said = ApacheTopicNode.decode(node.data)
            moving = {**(said.adding_replicas or {}), **(said.removing_replicas or {})}
            for number, each in (said.partitions or {}).items():
                one = StoredPartition(node.czxid, tuple(each.broker_ids or ()), number in moving)
                stored[name, int(number)] = self._with_record(one, name, int(number))
        wishes = tree.find(paths.APACHE_TOPICS_DELETED.at())
        self.going = frozenset(() if wishes is None else wishes.children)
        self.stored, self.topics = stored, topics
        return True

    def _with_record(self, one: StoredPartition, topic: str, number: int) -> StoredPartition:
        found = self.tree.find(paths.APACHE_STATE.at(topic=topic, partition=number))
        if found is None:
            return one
        said = ApachePartitionStateNode.decode(found.data)
        return StoredPartition(
            one.generation,
            one.assigned,
            one.moves,
            said.leader if said.leader is not None else -1,
            said.leader_epoch or 0,
            tuple(said.isr or ()),
            found.version,
            said.controller_epoch or 0,
        )

    def generation_of(self, topic: str) -> int:
        """The generation of a topic, as it was looked at last; 0 where there is none, or it is to go."""
        return 0 if topic in self.going else self.topics.get(topic, 0)

    def leader(self) -> str:
        """The process that leads the first partition of the topic that is kept; else the first broker."""
        known = self.stored.get((LEARNED, 0))
        return self.brokers.get(-1 if known is None else known.leader, self.brokers[1])

    # Brokers

    def node(self, broker_id: int) -> Any:
        """The node of a broker; None while it does not run."""
        nodes = self.world.processes[self.brokers[broker_id]].nodes
        return nodes[0] if nodes else None

    def logs(self, broker_id: int) -> dict[PartitionName, bytes]:
        """The logs on a broker's disk, by partition: all segments, one after the other."""
        contents = self.world.processes[self.brokers[broker_id]].disk.contents
        found: dict[PartitionName, bytes] = {}
        for name in sorted(contents):
            part = re.fullmatch(r"logs/(.+)-(\d+)/\d{20}\.log", name)
            if part is not None:
                key = (part[1], int(part[2]))
                found[key] = found.get(key, b"") + bytes(contents[name].data)
        return found

    def end_of(self, broker_id: int, key: PartitionName) -> int:
        """Where a broker's log of a partition ends: as its process has it, else as its disk has it."""
        node = self.node(broker_id)
        keeper = None if node is None else vars(node)["_keeper"]
        if keeper is not None:
            log = keeper.folder.logs.get(key)
            return 0 if log is None else int(log.end)
        return len(values_in(self.logs(broker_id).get(key, b""), may_be_torn=True))

    def exported(self) -> list[dict[str, Any]]:
        """The lines that the learner has written."""
        content = self.world.processes[LEARNER].disk.contents.get("export/export.jsonl")
        lines = bytes(content.data).split(b"\n")[:-1] if content is not None else []
        return [json.loads(line) for line in lines]

    def start(self) -> None:
        """Start everything, in some order within a second."""
        names = list(self.servers)
        while names:
            name = self.rng.one_of(names)
            names.remove(name)
            self.world.after(self.rng.below(1_000_000), partial(self.world.start, name))
        self.world.start("administrator")
        self.world.after(1_500_000, partial(self.world.start, "client"))


def values_in(data: bytes, *, may_be_torn: bool = False) -> list[str]:
    """The values of the records of a log, in order, as far as batches are whole. One that `may_be_torn` ends
    where something else begins, as that of a broker that lost its power."""
    found: list[str] = []
    try:
        for batch in batches_in(data, may_be_cut=True):
            if may_be_torn and not RecordBatchFixed.crc_holds(data, batch.start, batch.end):
                break
            found += [bytes(record.value or b"").decode() for record in records_of(data, batch)]
    except RemoteProtocolError:
        if not may_be_torn:
            raise
    return found


def address(broker_id: int) -> str:
    """Where a broker listens."""
    return f"10.0.2.{broker_id}:{PORT}"


def built(
    seed: int,
    settings: PartitionsSettings = PLAIN,
    *,
    conditions: NetworkConditions | None = None,
    pace: Pace | None = None,
    keeps_lines: bool = False,
) -> PartitionsCluster:
    """A cluster of which nothing runs yet."""
    rng = Rng(seed)
    world = WatchedWorld(
        rng.bits(), conditions=conditions or some_conditions(rng), pace=pace or some_pace(rng)
    )
    world.keeps_lines = keeps_lines
    history = PartitionsHistory()
    administrator = WishingAdministrator([STORE], SESSION_MS)
    cluster = PartitionsCluster(world, settings, rng, history, administrator)
    for name, host, members in _processes(cluster):
        chance = rng.fork()
        process = world.add(name, host, partial(_made, members, chance))
        process.loses_power = None if settings.loses_power else False
    addresses = {number: address(number) for number in cluster.brokers}
    cluster.client = PartitionsClient(history, rng.fork(), addresses, cluster.generation_of)
    world.add("client", "10.0.8.1", lambda _: [Member("client", cluster.client)])
    world.add("administrator", "10.0.9.1", lambda _: [Member("administrator", administrator)])
    return cluster


Makes = Callable[[Storage, int], Sequence[Member]]


def _made(members: Makes, chance: Rng, storage: Storage) -> Sequence[Member]:
    return members(storage, chance.bits())


def _processes(cluster: PartitionsCluster) -> Sequence[tuple[str, str, Makes]]:
    """Name, host and members of each process of a role."""
    settings = cluster.settings
    kept = MetastoreOptions(
        client_port_address="10.0.0.1",
        client_port=2181,
        data_dir="m",
        tick_time_ms=500,
        snapshot_bytes=8_192,
    )
    store = replispec.metastore.zookeeper.process.members
    found: list[tuple[str, str, Makes]] = [
        (METASTORE, "10.0.0.1", lambda storage, seed: store(kept, storage, seed))
    ]
    for number, name in enumerate(CONTROLLERS):
        standing = KafkaControllerOptions(
            broker_id=100 + number, zookeeper_connect=STORE, **settings.controller()
        )
        controller = replispec.controller.kafka.process.members
        found.append((name, f"10.0.1.{number + 1}", _with(controller, standing)))
    for number, name in cluster.brokers.items():
        serving = KafkaBrokerOptions(
            broker_id=number,
            zookeeper_connect=STORE,
            listeners=f"PLAINTEXT://{address(number)}",
            log_dirs="logs",
            **settings.broker(),
        )
        found.append((name, f"10.0.2.{number}", _with(replispec.broker.kafka.process.members, serving)))
    reading = KafkaLearnerOptions(
        bootstrap_servers=",".join(address(number) for number in cluster.brokers),
        topics=LEARNED,
        export_folder="export",
        metadata_max_age_ms=1_000,
        follower=settings.follower(),
    )
    found.append((LEARNER, "10.0.3.1", _with(replispec.learner.kafka.process.members, reading)))
    return found


def _with(members: Callable[[Any, Storage, int], Sequence[Member]], options: Any) -> Makes:
    return lambda storage, seed: members(options, storage, seed)
