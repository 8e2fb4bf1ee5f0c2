"""A controller of Kafka's replication in a few hundred lines, for tests of the suite; wrong ones override one
choice of it each. It looks at a scripted store when that changes, and makes commands: no socket, no clock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replispec.wire.kafka import apache as a
from replispec.wire.kafka.codes import ApiKey
from replispec.wire.zookeeper.codes import CreateFlags, Permission
from replispec.wire.zookeeper.operations import AccessEntry, CreateRequest
from tests.conformance.subjects.kafka_replica import Key
from tests.conformance.subjects.metastore import GoodMetastore
from tests.conformance.subjects.nodes import Refusal

ELECTED, OFFICE_SESSION, NOBODY = 1, 88, -1
OFFICE, EPOCH, IDS, TOPICS = "/controller", "/controller_epoch", "/brokers/ids", "/brokers/topics"
WISHES, MOVES, CHANGES = "/admin/delete_topics", "/admin/reassign_partitions", "/isr_change_notification"
BEGINS_DELETION = -2
ANYBODY = [AccessEntry(Permission.ALL, "world", "anyone")]
VERSIONS: dict[int, int] = {ApiKey.LEADER_AND_ISR: 1, ApiKey.STOP_REPLICA: 0, ApiKey.UPDATE_METADATA: 4}


@dataclass(frozen=True)
class Led:
    """The record of a partition."""

    leader: int
    epoch: int
    isr: tuple[int, ...]
    assigned: tuple[int, ...]
    version: int


class ControllerChoices:
    """What a controller decides right, and wrong ones override."""

    def first(self, assigned: Sequence[int], live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]] | None:
        """The leader and the ISR of a new partition; None while nobody lives."""
        there = tuple(each for each in assigned if each in live)
        return (there[0], there) if there else None

    def next(self, led: Led, live: Mapping[int, Any]) -> tuple[int, tuple[int, ...]]:
        """The leader and the ISR after somebody died or came."""
        isr = tuple(each for each in led.isr if each in live)
        if not isr:
            return NOBODY, led.isr
        return (led.leader if led.leader in isr else self.chosen(led, isr)), isr

    def chosen(self, led: Led, isr: Sequence[int]) -> int:
        """Who of the ISR leads."""
        return next(each for each in led.assigned if each in isr)

    def next_epoch(self, epoch: int) -> int:
        """The epoch of the next leader."""
        return epoch + 1

    def stands(self, owner: int | None) -> bool:
        """Whether it stands for the office."""
        return owner is None

    def is_mine(self, owner: int | None) -> bool:
        """Whether the node of the controller is its own."""
        return owner == OFFICE_SESSION

    def raised(self, epoch: int) -> int:
        """The epoch of the next controller."""
        return epoch + 1

    def may_write(self, known: int, found: int) -> bool:
        """Whether a write is fenced by no other controller."""
        return known == found

    def is_deleted(self, waiting: set[int]) -> bool:
        """Whether the nodes of a topic may go."""
        return not waiting

    def waited_for(self, assigned: set[int], live: Iterable[int]) -> set[int]:  # noqa: ARG002
        """Whose replicas are to be deleted first."""
        return assigned

    def has_moved(self, target: Sequence[int], isr: Sequence[int]) -> bool:
        """Whether a partition may leave its old brokers."""
        return set(target) <= set(isr)

    def reads_notices(self) -> bool:
        """Whether it hears of ISRs that leaders changed."""
        return True

    def commanded(self, led: Led) -> Iterable[int]:
        """Who is told of a partition that lies on him."""
        return led.assigned


class GoodController(ControllerChoices):
    """A controller that does it right."""

    def __init__(self, store: GoodMetastore) -> None:
        self.store = store
        self.out: list[tuple[int, int, Any]] = []  # a broker, a key, a command
        self.in_office = False
        self.epoch, self.epoch_version = 0, 0
        self.live: dict[int, Any] = {}
        self.born: dict[int, int] = {}
        self.told: dict[tuple[int, Key], tuple[Any, ...]] = {}
        self.shown: dict[tuple[int, Key], Led] = {}
        self.waiting: dict[str, set[int]] = {}
        self.moving: dict[Key, tuple[int, ...]] = {}

    # The store

    def data(self, path: str) -> Any:
        """What a node says; None for no node, and for what cannot be read."""
        node = self.store.nodes.all.get(path)
        try:
            return None if node is None else json.loads(node.data or b"null")
        except ValueError:
            return None

    def children(self, path: str) -> list[str]:
        """The names below a node."""
        node = self.store.nodes.all.get(path)
        return sorted(node.children) if node else []

    def write(self, *changes: tuple[str, Any]) -> None:
        """Make, change or (None) delete nodes under one number."""
        nodes, told = self.store.nodes, []
        nodes.begin()
        for path, value in changes:
            data = json.dumps(value).encode()
            try:
                if value is None:
                    told += nodes.delete(path, -1)
                elif path in nodes.all:
                    told += nodes.set_data(path, data, -1)
                else:
                    flags = CreateFlags.EPHEMERAL if path == OFFICE else CreateFlags.PERSISTENT
                    told += nodes.create(CreateRequest(path, data, ANYBODY, flags), OFFICE_SESSION)[1]
            except Refusal:
                continue
        if told:
            self.store.tell(told)

    def fenced(self, *changes: tuple[str, Any]) -> None:
        """Write as controller."""
        if self.may_write(self.epoch_version, self.store.nodes.all[EPOCH].version):
            self.write(*changes)
        else:
            self.in_office = False

    # Deciding

    def settle(self) -> None:
        """Do what the store wants done."""
        self.hold_office()
        if self.in_office:
            self.see_brokers()
            for topic in self.children(TOPICS):
                self.lead(topic)
            self.move()
            self.delete()
            self.hear()
            self.command()

    def hold_office(self) -> None:
        """Stand, or see that another one is the controller."""
        node = self.store.nodes.all.get(OFFICE)
        owner = None if node is None else node.owner
        if self.stands(owner):
            self.epoch = self.raised(self.data(EPOCH) or 0)
            said = {"version": 1, "brokerid": ELECTED, "timestamp": "1"}
            self.write((OFFICE, said), (EPOCH, self.epoch))
            self.epoch_version = self.store.nodes.all[EPOCH].version
            self.in_office = True
            self.told.clear()
            self.shown.clear()
        elif not self.is_mine(owner):
            self.in_office = False

    def see_brokers(self) -> None:
        """Who lives."""
        found = {int(name): self.data(f"{IDS}/{name}") for name in self.children(IDS)}
        born = {each: self.store.nodes.all[f"{IDS}/{each}"].czxid for each in found}
        for each in self.live:
            if born.get(each) != self.born.get(each):
                self.told = {key: value for key, value in self.told.items() if key[0] != each}
                self.shown = {key: value for key, value in self.shown.items() if key[0] != each}
                for waiting in self.waiting.values():
                    waiting.discard(-each)
        if found.keys() != self.live.keys():
            self.shown.clear()
        self.live = {each: node for each, node in found.items() if node}
        self.born = born

    def record(self, key: Key) -> Led | None:
        """What the store says of a partition."""
        topic, number = key
        path = f"{TOPICS}/{topic}/partitions/{number}/state"
        said, node = self.data(path), self.store.nodes.all.get(path)
        assigned = ((self.data(f"{TOPICS}/{topic}") or {}).get("partitions") or {}).get(str(number))
        if not said or node is None or assigned is None:
            return None
        return Led(said["leader"], said["leader_epoch"], tuple(said["isr"]), tuple(assigned), node.version)

    def put(self, key: Key, leader: int, epoch: int, isr: Sequence[int]) -> None:
        """Write a record."""
        topic, number = key
        state = {
            "controller_epoch": self.epoch, "leader": leader, "version": 1,
            "leader_epoch": epoch, "isr": list(isr),
        }  # fmt: skip
        folder = f"{TOPICS}/{topic}/partitions"
        made = [(path, "") for path in (folder, f"{folder}/{number}") if path not in self.store.nodes.all]
        self.fenced(*made, (f"{folder}/{number}/state", state))

    def lead(self, topic: str) -> None:
        """Leaders of all partitions of a topic."""
        node = self.data(f"{TOPICS}/{topic}")
        if not isinstance(node, dict) or topic in self.waiting:
            return
        for name, assigned in node.get("partitions", {}).items():
            key = topic, int(name)
            led = self.record(key)
            if led is None:
                if chosen := self.first(assigned, self.live):
                    self.put(key, chosen[0], 0, chosen[1])
                continue
            leader, isr = self.next(led, self.live)
            if (leader, isr) != (led.leader, led.isr):
                self.put(key, leader, self.next_epoch(led.epoch), isr)

    def move(self) -> None:
        """Partitions that are to go elsewhere."""
        wish = self.data(MOVES)
        if not wish:
            return
        left = []
        for each in wish["partitions"]:
            key, target = (each["topic"], each["partition"]), tuple(each["replicas"])
            if not self.is_moved(key, target):
                left.append(each)
        if len(left) < len(wish["partitions"]):
            self.fenced((MOVES, {**wish, "partitions": left} if left else None))

    def is_moved(self, key: Key, target: tuple[int, ...]) -> bool:
        """Bring a partition one step nearer to its new brokers; whether it is there."""
        led = self.record(key)
        if led is None:
            return True
        if self.moving.get(key) != target:
            if led.assigned == target:
                return True
            self.moving[key] = target
            self.assign(key, (*target, *(each for each in led.assigned if each not in target)))
            self.put(key, led.leader, self.next_epoch(led.epoch), led.isr)
            return False
        if not self.has_moved(target, led.isr):
            return False
        del self.moving[key]
        self.assign(key, target)
        self.put(key, target[0], self.next_epoch(led.epoch), target)
        for broker in led.assigned:
            if broker not in target and broker in self.live:
                self.say(broker, ApiKey.STOP_REPLICA, self.stop(key))
        return True

    def assign(self, key: Key, replicas: Sequence[int]) -> None:
        """Write down on whom a partition lies."""
        node = self.data(f"{TOPICS}/{key[0]}")
        node["partitions"][str(key[1])] = list(replicas)
        self.fenced((f"{TOPICS}/{key[0]}", node))

    def delete(self) -> None:
        """Topics that are to go."""
        for topic in self.children(WISHES):
            numbers = ((self.data(f"{TOPICS}/{topic}") or {}).get("partitions") or {}).items()
            if topic not in self.waiting:
                every = {broker for _, assigned in numbers for broker in assigned}
                self.waiting[topic] = self.waited_for(every, self.live)
                self.announce([(topic, int(number)) for number, _ in numbers])
            for number, assigned in numbers:
                for broker in self.waiting[topic].intersection(assigned, self.live):
                    if -broker not in self.waiting[topic]:
                        self.waiting[topic].add(-broker)  # it was told
                        self.say(broker, ApiKey.STOP_REPLICA, self.stop((topic, int(number))))
            if self.is_deleted({each for each in self.waiting[topic] if each > 0}):
                folder = f"{TOPICS}/{topic}"
                gone = [f"{folder}/partitions/{each}" for each in self.children(f"{folder}/partitions")]
                paths = [path for each in gone for path in (f"{each}/state", each)]
                self.fenced(
                    *((path, None) for path in (*paths, f"{folder}/partitions", folder, f"{WISHES}/{topic}"))
                )
                del self.waiting[topic]

    def hear(self) -> None:
        """Notices of leaders."""
        if self.reads_notices():
            for name in self.children(CHANGES):
                self.fenced((f"{CHANGES}/{name}", None))

    def answered(self, broker: int, key: int, said: Any) -> None:
        """A broker answered a command."""
        if key == ApiKey.STOP_REPLICA:
            for each in said.partitions:
                self.waiting.get(each.topic_name, set()).discard(broker)
                self.waiting.get(each.topic_name, set()).discard(-broker)

    # Commands

    def say(self, broker: int, key: int, command: Any) -> None:
        """Have a broker commanded."""
        self.out.append((broker, key, command))

    def stop(self, key: Key) -> Any:
        """A command to delete a replica."""
        return a.ApacheStopReplicaRequest(
            ELECTED, self.epoch, delete_partitions=True, partitions=[a.ApachePartition(*key)]
        )

    def announce(self, keys: Sequence[Key]) -> None:
        """All are told that a topic goes."""
        parts = [self.state(key, Led(BEGINS_DELETION, 0, (), (), 0)) for key in keys]
        for broker in self.live:
            self.say(broker, ApiKey.UPDATE_METADATA, self.metadata(parts))

    def state(self, key: Key, led: Led) -> Any:
        """A partition as all are told of it."""
        found = a.ApacheUpdateMetadataPartition(*key, self.epoch, led.leader, led.epoch, offline_replicas=[])
        found.isr, found.zk_version, found.replicas = list(led.isr), led.version, list(led.assigned)
        return found

    def metadata(self, parts: list[Any]) -> Any:
        """What all are told."""
        brokers = [
            a.ApacheUpdateMetadataBroker(
                each, [a.ApacheUpdateMetadataEndpoint(node["port"], node["host"], "PLAINTEXT", 0)], None
            )
            for each, node in self.live.items()
        ]
        return a.ApacheUpdateMetadataRequest(ELECTED, self.epoch, partitions=parts, live_brokers=brokers)

    def command(self) -> None:
        """Tell each broker what it does not know."""
        every = {
            key: led
            for topic in self.children(TOPICS)
            if topic not in self.waiting
            for name in self.children(f"{TOPICS}/{topic}/partitions")
            if (led := self.record(key := (topic, int(name))))
        }
        for broker in self.live:
            for key, led in every.items():
                known = (led.epoch, led.assigned)
                if broker in self.commanded(led) and self.told.get((broker, key)) != known:
                    self.told[broker, key] = known
                    self.say(broker, ApiKey.LEADER_AND_ISR, self.leaders(key, led))
            fresh = {key: led for key, led in every.items() if self.shown.get((broker, key)) != led}
            if fresh or (broker, ("", 0)) not in self.shown:
                self.shown |= {(broker, key): led for key, led in fresh.items()}
                self.shown[broker, ("", 0)] = Led(0, 0, (), (), 0)
                parts = [self.state(key, led) for key, led in fresh.items()]
                self.say(broker, ApiKey.UPDATE_METADATA, self.metadata(parts))

    def leaders(self, key: Key, led: Led) -> Any:
        """A command to lead or follow."""
        part = a.ApacheLeaderAndIsr(*key, self.epoch, led.leader, led.epoch, is_new=led.epoch == 0)
        part.isr, part.zk_version, part.replicas = list(led.isr), led.version, list(led.assigned)
        node = self.live.get(led.leader)
        live = [a.ApacheLiveLeader(led.leader, node["host"], node["port"])] if node else []
        return a.ApacheLeaderAndIsrRequest(ELECTED, self.epoch, partitions=[part], live_leaders=live)
