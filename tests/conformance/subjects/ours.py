"""Our own roles inside of the test, on real sockets and on disks in memory that outlive a kill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import Any

import trio

from replispec.broker.rocketmq.core.addresses import HA, MAIN
from replispec.broker.rocketmq.node import BrokerNode
from replispec.conformance.adapters import LOOPBACK, AdapterDescription, Living, Starting
from replispec.controller.rocketmq.node import LISTENER, ControllerNode
from replispec.controller.rocketmq.process import CONTROLLER, controller
from replispec.learner.rocketmq.node import LearnerNode
from replispec.nameserver.rocketmq.node import NameServerNode
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Addresses, Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import Disk, Rng
from replispec.runtime.sim.journal import SimulatedStorage
from replispec.runtime.storage import Stores
from replispec.runtime.world import Level, Member
from replispec.wire.rocketmq.broker import SendMessageV2Request
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.options import (
    BrokerOptions,
    ControllerOptions,
    LearnerOptions,
    NameServerOptions,
    RetentionOptions,
)
from replispec.wire.rocketmq.remoting import RemotingHeader

ABILITIES = frozenset({"crash", "reset", "keep_storage", "start_at_once"})
ROLES = frozenset({"broker", "async_learner", CONTROLLER})
DESCRIBED = AdapterDescription("replispec", "1", ROLES, ABILITIES)
LOG_FILE_BYTES = 64 * 1024
# Whatever is full may be deleted, and is when somebody asks for it (329).
WHEN_ASKED = RetentionOptions(file_reserved_time=0, delete_when="", disk_max_used_space_ratio=100)
SET = "broker-a"
EPOCHS, MESSAGES_PER_EPOCH, MESSAGE_BYTES = 3, 150, 400
SOON_S = 0.05
SCAN_MS = 1_000


@dataclass
class OurProcess:
    """One node, while it runs."""

    member: Member
    addresses: Mapping[str, str] = field(default_factory=dict)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    stop: trio.Event = field(default_factory=trio.Event)
    gone: trio.Event = field(default_factory=trio.Event)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until it is stopped or killed."""
        clock = Clock()
        log = Log(StringIO(), Level.ERROR, clock.now_us)
        with self.scope:
            async with trio.open_nursery() as nursery:
                found: Addresses = await nursery.start(
                    partial(serve, [self.member], Process(), log, clock=clock, stop=self.stop)
                )
                self.addresses = found[self.member.role]
                task_status.started()
        self.gone.set()

    async def end(self, *, killed: bool) -> None:
        """Come to its end, in order or at once."""
        if killed:
            self.scope.cancel()
        else:
            self.stop.set()
        await self.gone.wait()


@dataclass
class OurAdapter:
    """Stands in for `replispec.conformance.adapters.Adapter`."""

    nursery: trio.Nursery
    reserved: set[str]
    described: AdapterDescription = DESCRIBED
    disks: dict[str, Disk] = field(default_factory=dict)
    living: dict[str, OurProcess] = field(default_factory=dict)

    async def start(self, starting: Starting) -> Living:
        """A broker, learner or controller of ours; the disk of this name is the one that it had."""
        disk = self.disks.setdefault(starting.name, Disk(Rng(1)))
        port = int(starting.address.rpartition(":")[2]) if starting.address else 0
        process = OurProcess(_member(starting, SimulatedStorage(disk), port))
        await self.nursery.start(process.run)
        self.living[starting.name] = process
        listening = {"remoting": process.addresses[LISTENER if starting.role == CONTROLLER else MAIN]}
        if HA in process.addresses:
            listening["replication"] = process.addresses[HA]
        return Living(starting.name, listening)

    async def crash(self, name: str) -> None:
        """End it at once; the operating system lives on."""
        await self.living.pop(name).end(killed=True)
        self.disks[name].crash(power=False)

    async def stop(self, name: str) -> None:
        """Let it end in order."""
        await self.living.pop(name).end(killed=False)
        self.disks[name].crash(power=False)

    async def reset(self, name: str) -> None:
        """Forget what it wrote."""
        del self.disks[name]

    def lives(self, name: str) -> bool:
        """Whether it runs."""
        return name in self.living

    def how_ended(self, name: str) -> str:  # noqa: ARG002
        """Ours do not end by themselves: what they raise fails the test."""
        return ""


def _member(starting: Starting, storage: SimulatedStorage, port: int) -> Member:
    if starting.role == CONTROLLER:
        return _of_a_group(starting, storage, port)
    named: Mapping[str, Any] = {
        "broker_cluster_name": starting.cluster,
        "broker_name": starting.set,
        "controller_addr": starting.controllers,
        "namesrv_addr": starting.name_servers,
        "bind_address": LOOPBACK,
        "listen_port": port,
        "mapped_file_size_commit_log": LOG_FILE_BYTES,
        "retention": WHEN_ASKED,
    }
    files = storage.files("store")
    if starting.role == "async_learner":
        lines = storage.lines("export")
        node = LearnerNode(LearnerOptions(**named), files, lines)
        return Member("learner", node, Stores(files, lines=lines))
    return Member("broker", BrokerNode(BrokerOptions(**named), files), Stores(files))


def _of_a_group(starting: Starting, storage: SimulatedStorage, port: int) -> Member:
    """A controller of those that the case started; their ids are their places."""
    options = ControllerOptions(
        controller_d_leger_peers=tuple((f"n{at}", each) for at, each in enumerate(starting.controllers)),
        controller_d_leger_self_id=f"n{starting.member}",
        scan_not_active_broker_interval_ms=SCAN_MS,
        bind_address=LOOPBACK,
        listen_port=port,
    )
    return controller(options, storage, 1 + starting.member, ends_process=False)


async def serve_name_server(*, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    """Our name server, until it is cancelled; its address once it listens."""
    node = NameServerNode(NameServerOptions(bind_address=LOOPBACK, listen_port=0))
    process = OurProcess(Member("nameserver", node))
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        task_status.started(next(iter(process.addresses.values())))


async def serve_master(*, task_status: trio.TaskStatus[Mapping[str, str]] = trio.TASK_STATUS_IGNORED) -> None:
    """A master of ours with three epochs and its controller, until it is cancelled; where the suite finds
    them once it serves."""
    async with trio.open_nursery() as nursery:
        controller = await _controller(nursery)
        disk = Disk(Rng(1))
        for number in range(EPOCHS):
            process = await _master(nursery, disk, controller)
            await _send(process.addresses[MAIN])
            if number < EPOCHS - 1:
                await process.end(killed=False)
                disk.crash(power=False)
        addresses = process.addresses
        task_status.started({"target": addresses[HA], "broker": addresses[MAIN], "controller": controller})


async def _controller(nursery: trio.Nursery) -> str:
    journal = SimulatedStorage(Disk(Rng(1))).journal("log")
    options = ControllerOptions(
        bind_address=LOOPBACK, listen_port=0, scan_not_active_broker_interval_ms=SCAN_MS
    )
    process = OurProcess(Member("controller", ControllerNode(options, journal), Stores(journal=journal)))
    await nursery.start(process.run)
    return process.addresses[LISTENER]


async def _master(nursery: trio.Nursery, disk: Disk, controller: str) -> OurProcess:
    files = SimulatedStorage(disk).files("store")
    options = BrokerOptions(
        broker_name=SET,
        controller_addr=(controller,),
        bind_address=LOOPBACK,
        listen_port=0,
        mapped_file_size_commit_log=LOG_FILE_BYTES,
    )
    node = BrokerNode(options, files)
    process = OurProcess(Member("broker", node, Stores(files)))
    await nursery.start(process.run)
    while not node.serves:
        await trio.sleep(SOON_S)
    return process


async def _send(address: str) -> None:
    """One epoch's messages; all of them are stored when the last one is answered."""
    host, _, port = address.rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        for number in range(MESSAGES_PER_EPOCH):
            header = SendMessageV2Request(
                producer_group="p",
                topic="ReplispecHistory",
                default_topic="TBW102",
                default_topic_queue_nums=4,
                queue_id=number % 4,
                born_timestamp=0,
                sys_flag=0,
                flag=0,
            )
            fields = header.to_ext_fields()
            asked = RemotingHeader(code=RequestCode.SEND_MESSAGE_V2, opaque=number, ext_fields=fields)
            body = f"{number:08d}".encode().ljust(MESSAGE_BYTES, b".")
            await stream.send_all(Command(asked, body).encode())
            assert await stream.receive_some(65_536)
