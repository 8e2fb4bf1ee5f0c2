"""A whole cluster in the simulated world: controller, name server, three brokers, a learner, a client."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import replispec.broker.rocketmq.process
import replispec.controller.rocketmq.process
import replispec.learner.rocketmq.process
import replispec.nameserver.rocketmq.process
from replispec.runtime.configuration import parse
from replispec.runtime.primitives.jsons import loads, take_object
from replispec.runtime.sim import Disk, NetworkConditions, Pace, Rng, World
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.client import TOPIC, Client, number_of, records
from tests.sim.cluster_kinds import some_conditions, some_pace
from tests.sim.history import History, Place
from tests.sim.nemesis import Nemesis
from tests.sim.settings import PLAIN, Promise, Settings

BROKER_NAME: Final = "simulated-set"
BROKERS: Final = ("broker-1", "broker-2", "broker-3")
MORE_BROKERS: Final = (*BROKERS, "broker-4", "broker-5")
LEARNER: Final = "learner"
CONTROLLER: Final = "controller"
MORE_CONTROLLERS: Final = (CONTROLLER, "controller-2", "controller-3")
NAMESERVER: Final = "nameserver"
LEARNERS: Final = (LEARNER,)
SERVERS: Final = (CONTROLLER, NAMESERVER, *BROKERS, *LEARNERS)
HOSTS: Final = {
    CONTROLLER: "127.0.0.1",
    NAMESERVER: "127.0.0.2",
    "controller-2": "127.0.0.3",
    "controller-3": "127.0.0.4",
    "broker-1": "127.0.0.11",
    "broker-2": "127.0.0.12",
    "broker-3": "127.0.0.13",
    "broker-4": "127.0.0.14",
    "broker-5": "127.0.0.15",
    LEARNER: "127.0.0.21",
    "client": "127.0.0.31",
}
PORTS: Final = {
    NAMESERVER: 9876,
    LEARNER: 10911,
    **dict.fromkeys(MORE_CONTROLLERS, 9878),
    **dict.fromkeys(MORE_BROKERS, 10911),
}
EXPORT: Final = "export/messages.jsonl"
LEARNING: Final[Mapping[str, object]] = {"asyncLearner": "true", "exportPath": EXPORT}
LOG_FILE_BYTES: Final = 16_384
RECORD_HEAD_BYTES: Final = 64
"""Enough of a record to tell it from every other: size, checksum, place and times are in it."""
Factory = Callable[[Any, Storage, int], Sequence[Member]]


def address(name: str) -> str:
    """Where a process of the cluster listens."""
    return f"{HOSTS[name]}:{PORTS[name]}"


def broker_at(where: str) -> str:
    """The broker that listens at an address; the first when none does."""
    return next((name for name in MORE_BROKERS if address(name) == where), BROKERS[0])


def properties(name: str, settings: Settings = PLAIN) -> Mapping[str, object]:
    """The configuration of a process, in RocketMQ's parameters; shorter times than the defaults."""
    common: dict[str, object] = {"bindAddress": HOSTS[name], "listenPort": PORTS[name]}
    controllers = MORE_CONTROLLERS[: settings.controllers]
    match role(name):
        case "controller":
            members = (f"n{number}-{address(each)}" for number, each in enumerate(controllers))
            return common | {
                "controllerDLegerGroup": "simulation",
                "controllerDLegerPeers": ";".join(members),
                "controllerDLegerSelfId": f"n{controllers.index(name)}",
                "controllerStorePath": "controller",
                "scanNotActiveBrokerInterval": 500,
                "scanInactiveMasterInterval": 500,
                "electedListeningPeriod": 2_000,
            }
        case "nameserver":
            return common
        case _:
            return {
                **common,
                **(LEARNING if name in LEARNERS else {**settings.properties(), "officeSilencePeriod": 5_000}),
                **settings.keeping(),
                "brokerClusterName": "simulation",
                "brokerName": BROKER_NAME,
                "brokerIP1": HOSTS[name],
                "brokerIP2": HOSTS[name],
                "haListenPort": PORTS[name] + 1,
                "namesrvAddr": address(NAMESERVER),
                "enableControllerMode": "true",
                "controllerAddr": ";".join(map(address, controllers)),
                "storePathRootDir": "store",
                "storePathCommitLog": "store/commitlog",
                "mappedFileSizeCommitLog": LOG_FILE_BYTES,
                "brokerHeartbeatInterval": 500,
                "controllerHeartBeatTimeoutMills": 2_000,
                "syncBrokerMetadataPeriod": 1_000,
                "checkSyncStateSetPeriod": 1_000,
                "haSendHeartbeatInterval": 1_000,
                "haHousekeepingInterval": 4_000,
                "haMaxTimeSlaveNotCatchup": 3_000,
                "registerNameServerPeriod": 10_000,
            }


def factory(name: str) -> Factory:
    """Who makes the members of a process."""
    if name in MORE_CONTROLLERS:
        return replispec.controller.rocketmq.process.members
    if name == NAMESERVER:
        return replispec.nameserver.rocketmq.process.members
    return (
        replispec.learner.rocketmq.process.members
        if name in LEARNERS
        else replispec.broker.rocketmq.process.members
    )


def role(name: str) -> str:
    """The role under which a process is configured."""
    if name in MORE_CONTROLLERS:
        return CONTROLLER
    return "broker" if name in MORE_BROKERS else name


@dataclass
class Cluster:
    """One cluster and what is known of it."""

    world: World
    history: History
    client: Client
    nemesis: Nemesis
    rng: Rng
    settings: Settings = PLAIN
    joining: Sequence[str] = ()
    """Where controllers listen that join later."""
    ids: dict[str, str] = field(default_factory=dict)
    deleted: dict[Place, int] = field(default_factory=dict)
    """Messages that were kept for as long as was promised, and deleted."""

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers that it has."""
        return MORE_BROKERS[: self.settings.brokers]

    @property
    def controllers(self) -> tuple[str, ...]:
        """The controllers that it has."""
        return MORE_CONTROLLERS[: self.settings.controllers]

    @property
    def servers(self) -> tuple[str, ...]:
        """All its processes but the client."""
        return (*self.controllers, NAMESERVER, *self.brokers, *LEARNERS)

    def start(self) -> None:
        """Start everything, in some order within a second."""
        names = list(self.servers)
        while names:
            name = self.rng.one_of(names)
            names.remove(name)
            self.world.after(self.rng.below(1_000_000), partial(self.world.start, name))
        self.world.after(1_000_000, partial(self.world.start, "client"))

    def members(self) -> tuple[int, ...]:
        """The SyncStateSet that the client heard of last."""
        return self.history.views[-1].members if self.history.views else ()

    def is_calm(self) -> bool:
        """Whether the set is whole, and every broker has every message that was acknowledged."""
        if len(self.members()) < len(self.brokers):
            return False
        logs = [self.messages(name) for name in self.brokers]
        return all(
            self.world.processes[name].is_alive and not self.world.processes[name].is_paused
            for name in self.servers
        ) and all(
            log.get(place) == number for log in logs for number, place in self.history.acknowledged.items()
        )

    def copies(self, place: int) -> int:
        """How many brokers hold the record at an offset of the log that a sender was told of."""
        heads = [self.log_from(name, place)[:RECORD_HEAD_BYTES] for name in self.brokers]
        return max(heads.count(head) if head.strip(b"\0") else 0 for head in heads)

    def log_files(self, name: str) -> list[str]:
        """The files of the commit log of a broker or learner, the oldest first."""
        return log_files(self.world.processes[name].disk)

    def first(self, name: str) -> int:
        """Where the commit log of a broker or learner begins."""
        files = self.log_files(name)
        return int(files[0].rpartition("/")[2]) if files else 0

    def log(self, name: str) -> bytes:
        """The commit log of a broker or learner, as its disk holds it."""
        contents = self.world.processes[name].disk.contents
        return b"".join(bytes(contents[part].data) for part in self.log_files(name))

    def log_from(self, name: str, offset: int) -> bytes:
        """Likewise from an offset on, which is not before the first."""
        return self.log(name)[max(0, offset - self.first(name)) :]

    def messages(self, name: str) -> dict[Place, int]:
        """The messages of a log by queue and offset; the ends of its files are passed over."""
        log = self.log(name)
        found = {}
        for start in range(0, len(log), LOG_FILE_BYTES):
            for record in records(log[start : start + LOG_FILE_BYTES]):
                if record.topic == TOPIC:
                    found[record.queue_id, record.queue_offset] = number_of(record)
        return found

    def exported(self) -> list[dict[str, object]]:
        """The lines that the learner has written, each as an object."""
        content = self.world.processes[LEARNER].disk.contents.get(EXPORT)
        lines = bytes(content.data).split(b"\n")[:-1] if content is not None else []
        return [take_object(loads(line), "a line of the export") for line in lines]

    def identity(self, name: str) -> str | None:
        """What a broker's identity file says, if it has one."""
        contents = self.world.processes[name].disk.contents
        found = [each for each in contents if each.endswith("/brokerIdentity")]
        return bytes(contents[found[0]].data).decode() if found else None

    def broker_id(self, name: str) -> int:
        """The id that a broker has for life; 0 while it has none."""
        identity = self.identity(name)
        return int(identity.split("#")[2]) if identity is not None else 0


def log_files(disk: Disk) -> list[str]:
    """The files of the commit log on a disk, the oldest first."""
    return sorted(each for each in disk.contents if re.search(r"/commitlog/\d{20}$", each))


def build(
    seed: int,
    *,
    keeps_lines: bool = False,
    conditions: NetworkConditions | None = None,
    pace: Pace | None = None,
    settings: Settings = PLAIN,
) -> Cluster:
    """A cluster of which nothing runs yet."""
    rng = Rng(seed)
    world = World(rng.bits(), conditions=conditions or some_conditions(rng), pace=pace or some_pace(rng))
    world.keeps_lines = keeps_lines
    brokers = MORE_BROKERS[: settings.brokers]
    controllers = MORE_CONTROLLERS[: settings.controllers]
    for name in (*controllers, NAMESERVER, *brokers, *LEARNERS):
        text = "".join(f"{key}={value}\n" for key, value in properties(name, settings).items())
        process = world.add(
            name, HOSTS[name], maker(name, parse(text, ROLES[role(name)]).options, rng.fork())
        )
        process.loses_power = None if settings.loses_power else False
    history = History()
    client = new_client(history, rng, settings)
    world.add("client", HOSTS["client"], lambda _: [Member("client", client)])
    nemesis = Nemesis(
        world,
        rng.fork(),
        controllers=controllers,
        brokers=brokers,
        others=[NAMESERVER, *LEARNERS],
        master=lambda: broker_at(client.master),
        settings=settings,
    )
    history.tell = nemesis.happened
    cluster = Cluster(world, history, client, nemesis, rng, settings)
    if settings.promise is not Promise.WHATEVER_FAILS:
        nemesis.is_calm = cluster.is_calm
    return cluster


def new_client(history: History, rng: Rng, settings: Settings = PLAIN) -> Client:
    """A client that knows the controllers and all brokers."""
    return Client(
        history,
        rng.fork(),
        controllers=[address(name) for name in MORE_CONTROLLERS[: settings.controllers]],
        brokers=[address(name) for name in MORE_BROKERS[: settings.brokers]],
        broker_name=BROKER_NAME,
        obeys=settings.obeys,
    )


def maker(name: str, options: Any, rng: Rng) -> Callable[[Storage], Sequence[Member]]:
    """What makes the members of a process at each start, with a seed of its own each time."""
    return lambda storage: factory(name)(options, storage, rng.bits())
