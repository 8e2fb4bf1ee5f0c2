"""Three broker sets with a topic of logical queues, of either form: who runs there, where, how it is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import replispec.broker.rocketmq.process
import replispec.controller.rocketmq.process
import replispec.nameserver.rocketmq.process
from replispec.broker.rocketmq.node import BrokerNode
from replispec.runtime.configuration import parse
from replispec.runtime.rocketmq.log import retention
from replispec.runtime.sim import Rng, SimulatedFiles, World
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member, Note
from replispec.wire.rocketmq.constants import FLUSHED_FILE, INDEX_FOLDER
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.client import number_of, records
from tests.sim.cluster import log_files
from tests.sim.cluster_kinds import some_conditions, some_pace
from tests.sim.settings import SYNC

TOPIC: Final = "queues"
CLUSTER: Final = "simulation"
SETS: Final = ("broker-a", "broker-b", "broker-c")
MEMBERS: Final[Mapping[str, Sequence[str]]] = {name: (f"{name}1", f"{name}2") for name in SETS}
BROKERS: Final = tuple(member for name in SETS for member in MEMBERS[name])
CONTROLLER: Final = "controller"
NAME_SERVER: Final = "nameserver"
SECOND: Final = "nameserver-2"
"""Another name server, in worlds of acts."""
SERVERS: Final = (CONTROLLER, NAME_SERVER, *BROKERS)
ADMINS: Final = ("admin-1", "admin-2")
CLIENTS: Final = (
    *("producer", "consumer", "group", "old producer", "auditor", "old consumer", "router"),
    "filler",
)
HOSTS: Final[Mapping[str, str]] = {
    CONTROLLER: "127.0.0.1",
    NAME_SERVER: "127.0.0.2",
    SECOND: "127.0.0.3",
    **{name: f"127.0.1.{number}" for number, name in enumerate(BROKERS, 1)},
    **{name: f"127.0.2.{number}" for number, name in enumerate(ADMINS, 1)},
    **{name: f"127.0.3.{number}" for number, name in enumerate(CLIENTS, 1)},
}
PORTS: Final[Mapping[str, int]] = {
    CONTROLLER: 9878,
    NAME_SERVER: 9876,
    SECOND: 9876,
    **dict.fromkeys(BROKERS, 10911),
}
LOG_FILE_BYTES: Final = 16_384
HOUR_MS: Final = 1_000
Place = tuple[str, int, int]
"""A broker set, a physical queue, and an offset in it."""


def address(name: str) -> str:
    """Where a process listens."""
    return f"{HOSTS[name]}:{PORTS[name]}"


NAME_SERVERS: Final = (address(NAME_SERVER),)
BOTH_NAME_SERVERS: Final = (*NAME_SERVERS, address(SECOND))


@dataclass(frozen=True)
class QueueSettings:
    """What of a world is drawn: how many must be in a set for a message to be taken, how many logical queues
    there are at first (of RIP-21: in each set), whether two administrators work at once, how often one dies,
    and for how many seconds messages are kept (0: for ever). `logical`: the queues are those of RIP-21;
    `made_first`: the topic is there before anything fails. `acts`: then brokers leave, are lost and come
    back, and so on; there are two name servers."""

    in_sync_min: int = 1
    queues: int = 4
    races: bool = True
    deaths_per_mille: int = 300
    loses_power: bool = True
    reserved: int = 0
    logical: bool = False
    made_first: bool = False
    acts: bool = False

    def __str__(self) -> str:
        """Everything that was drawn."""
        return (
            f"{self.queues} logical queues{' in each set' if self.logical else ''}, "
            f"{'two administrators' if self.races else 'one administrator'}, "
            f"{self.deaths_per_mille} of 1000 runs cut off, at least {self.in_sync_min} in a set"
            f"{'' if self.loses_power else ', machines stay on'}"
            f"{f', kept for {self.reserved} s' if self.reserved else ''}"
        )


def drawn(seed: int, *, logical: bool = False, acts: bool = False) -> QueueSettings:
    """The settings of a seed; they take nothing from its other random numbers."""
    rng = Rng(seed * 2 + 7)
    if acts:
        return QueueSettings(
            queues=rng.between(1, 2),
            races=rng.happens(500),
            deaths_per_mille=rng.one_of((0, 300, 700)),
            loses_power=rng.happens(600),
            reserved=rng.between(2, 3),
            logical=True,
            made_first=True,
            acts=True,
        )
    if logical:
        return QueueSettings(
            in_sync_min=rng.one_of((1, 1, 2)),
            queues=rng.between(1, 2),
            races=rng.happens(500),
            deaths_per_mille=rng.one_of((0, 300, 700)),
            loses_power=rng.happens(600),
            reserved=rng.between(2, 5) if rng.happens(400) else 0,
            logical=True,
            made_first=rng.happens(750),
        )
    return QueueSettings(
        in_sync_min=rng.one_of((1, 1, 2)),
        queues=rng.between(1, 6),
        races=rng.happens(500),
        deaths_per_mille=rng.one_of((0, 300, 700)),
        loses_power=rng.happens(600),
        reserved=rng.between(2, 5) if rng.happens(250) else 0,
    )


def _broker(name: str, settings: QueueSettings) -> Mapping[str, object]:
    keeping: dict[str, object] = {
        "cleanResourceInterval": 300 if settings.reserved else 600_000,
        "diskSpaceWarningLevelRatio": 100,
        "cleanFileForciblyEnable": "false",
    }
    if settings.reserved:
        hours = ";".join(f"{hour}" for hour in range(24))
        keeping |= {"fileReservedTime": settings.reserved, "deleteWhen": hours}
    return {
        "brokerClusterName": CLUSTER,
        "brokerName": name[:-1],
        "brokerIP1": HOSTS[name],
        "brokerIP2": HOSTS[name],
        "haListenPort": PORTS[name] + 1,
        "namesrvAddr": ";".join(BOTH_NAME_SERVERS if settings.acts else NAME_SERVERS),
        "enableControllerMode": "true",
        "controllerAddr": address(CONTROLLER),
        "storePathRootDir": "store",
        "storePathCommitLog": "store/commitlog",
        "mappedFileSizeCommitLog": LOG_FILE_BYTES,
        "autoCreateTopicEnable": "false",
        "flushDiskType": SYNC,
        "allAckInSyncStateSet": "true",
        "minInSyncReplicas": settings.in_sync_min,
        "officeSilencePeriod": 5_000,
        "brokerHeartbeatInterval": 500,
        "controllerHeartBeatTimeoutMills": 2_000,
        "syncBrokerMetadataPeriod": 1_000,
        "besideLogPeriod": 1_000,
        "flushConsumerOffsetInterval": 1_000,
        "checkSyncStateSetPeriod": 1_000,
        "haSendHeartbeatInterval": 1_000,
        "haHousekeepingInterval": 4_000,
        "haMaxTimeSlaveNotCatchup": 3_000,
        "registerNameServerPeriod": 10_000,
        **keeping,
    }


def properties(name: str, settings: QueueSettings) -> Mapping[str, object]:
    """The configuration of a process, in RocketMQ's parameters; shorter times than the defaults."""
    common: Mapping[str, object] = {"bindAddress": HOSTS[name], "listenPort": PORTS[name]}
    if name in BROKERS:
        return {**common, **_broker(name, settings)}
    if name in {NAME_SERVER, SECOND}:
        return common
    return {
        **common,
        "controllerDLegerGroup": "simulation",
        "controllerDLegerPeers": f"n0-{address(name)}",
        "controllerDLegerSelfId": "n0",
        "controllerStorePath": "controller",
        "scanNotActiveBrokerInterval": 500,
        "scanInactiveMasterInterval": 500,
        "electedListeningPeriod": 2_000,
    }


def _role(name: str) -> str:
    if name in BROKERS:
        return "broker"
    return NAME_SERVER if name == SECOND else name


_FACTORIES: Final[Mapping[str, Any]] = {
    "broker": replispec.broker.rocketmq.process.members,
    CONTROLLER: replispec.controller.rocketmq.process.members,
    NAME_SERVER: replispec.nameserver.rocketmq.process.members,
}


@dataclass
class Servers:
    """The servers of a world, and what their disks and nodes hold."""

    world: World
    rng: Rng
    settings: QueueSettings
    deleted: dict[Place, int] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    """Sets that are not there: they left, or are lost."""
    passed: set[str] = field(default_factory=set)
    """Sets that were passed over while they were lost: they end where others went on."""
    overtaken: set[str] = field(default_factory=set)
    """Those of them that are back, and were not told so yet."""

    @property
    def names(self) -> Sequence[str]:
        """All processes."""
        return (*SERVERS, SECOND) if self.settings.acts else SERVERS

    @property
    def sets(self) -> Sequence[str]:
        """The broker sets that are there."""
        return [name for name in SETS if name not in self.away]

    def start(self) -> None:
        """Start all, in some order within a second."""
        names = list(self.names)
        while names:
            name = self.rng.one_of(names)
            names.remove(name)
            self.world.after(self.rng.below(1_000_000), partial(self.world.start, name))

    def node(self, name: str) -> BrokerNode | None:
        """A broker that runs."""
        nodes = self.world.processes[name].nodes
        return nodes[0] if nodes and isinstance(nodes[0], BrokerNode) else None

    def masters(self, name: str) -> list[str]:
        """The members of a set that serve as its master, as far as they know."""
        return [each for each in MEMBERS[name] if (node := self.node(each)) is not None and node.serves]

    def master(self, name: str) -> str:
        """One that serves; the first where none does."""
        return (*self.masters(name), *MEMBERS[name])[0]

    @property
    def is_whole(self) -> bool:
        """Whether each set has one master, and both of its members in it."""
        for name in self.sets:
            masters = self.masters(name)
            node = self.node(masters[0]) if len(masters) == 1 else None
            if node is None or len(node.sync_set) < len(MEMBERS[name]):
                return False
        return True

    def first(self, name: str) -> int:
        """Where the log of a broker begins."""
        files = log_files(self.world.processes[name].disk)
        return int(files[0].rpartition("/")[2]) if files else 0

    def log(self, name: str, start: int = 0) -> bytes:
        """The commit log of a broker, as its disk holds it, from an offset on."""
        disk = self.world.processes[name].disk
        log = b"".join(bytes(disk.contents[part].data) for part in log_files(disk))
        return log[max(0, start - self.first(name)) :]

    def messages(self, name: str) -> dict[Place, int]:
        """The messages of the topic in the log of a broker."""
        log = self.log(name)
        found: dict[Place, int] = {}
        for start in range(0, len(log), LOG_FILE_BYTES):
            found |= _messages(name, log[start : start + LOG_FILE_BYTES])
        return found

    def hear(self, name: str, note: Note) -> None:
        """Read a line of the log of a process: an operator repairs what no replica repairs by itself, a log
        that shares no epoch with the master's, or ends before the master's begins."""
        if note.what.startswith("no epoch shared"):
            self.world.after(1_000_000, partial(self._empty, name))
        elif note.what == "replica wants deleted bytes":
            host = str(note.values["peer"]).rpartition(":")[0]
            late = next(each for each in BROKERS if HOSTS[each] == host)
            self.world.after(1_000_000, partial(self._empty, late))

    def _empty(self, name: str) -> None:
        process = self.world.processes[name]
        if not process.is_alive:
            return
        self.world.trace("operator", f"empties the log of {name}")
        self.world.kill(name)
        parts = ("/commitlog/", "epoch", FLUSHED_FILE, INDEX_FOLDER)
        for file in [each for each in process.disk.contents if any(part in each for part in parts)]:
            del process.disk.contents[file]
        self.world.start(name)

    @contextmanager
    def short_hours(self) -> Iterator[None]:
        """Hours are seconds, and what is deleted is remembered."""
        remove = SimulatedFiles.remove

        def watched(files: SimulatedFiles, name: str) -> None:
            disk, path = files._disk, files._path(name)
            if path in log_files(disk)[:1]:
                owner = next(each for each in BROKERS if self.world.processes[each].disk is disk)
                self.deleted |= _messages(owner, bytes(disk.contents[path].data))
            remove(files, name)

        with (
            patch.object(retention, "HOUR_MS", HOUR_MS),
            patch.object(SimulatedFiles, "remove", watched),
        ):
            yield


def _messages(broker: str, data: bytes) -> dict[Place, int]:
    return {
        (broker[:-1], record.queue_id, record.queue_offset): number_of(record)
        for record in records(data)
        if record.topic == TOPIC
    }


def build(seed: int, settings: QueueSettings, *, keeps_lines: bool = False) -> Servers:
    """The servers of a world, of which nothing runs yet."""
    rng = Rng(seed)
    world = World(rng.bits(), conditions=some_conditions(rng), pace=some_pace(rng))
    if settings.reserved:
        # Whoever lives an hour ahead deletes an hour too early.
        world.pace = replace(world.pace, wall_jump_ms=0, drift_per_mille=1)
    world.keeps_lines = keeps_lines
    servers = Servers(world, rng, settings)
    for name in servers.names:
        text = "".join(f"{key}={value}\n" for key, value in properties(name, settings).items())
        options = parse(text, ROLES[_role(name)]).options
        process = world.add(name, HOSTS[name], _maker(name, options, rng.fork()))
        process.loses_power = None if settings.loses_power else False
    return servers


def _maker(name: str, options: Any, rng: Rng) -> Any:
    def make(storage: Storage) -> Sequence[Member]:
        found: Sequence[Member] = _FACTORIES[_role(name)](options, storage, rng.bits())
        return found

    return make
