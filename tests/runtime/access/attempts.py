"""Roles that ask for signatures, and requests of everybody who may not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from replispec.broker.rocketmq.process import members as broker_members
from replispec.controller.rocketmq.process import members as controller_members
from replispec.learner.rocketmq.process import members as learner_members
from replispec.nameserver.rocketmq.process import members as name_server_members
from replispec.runtime.rocketmq.access import Signer
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.sim import Disk, Rng
from replispec.runtime.sim.journal import SimulatedStorage
from replispec.runtime.world import (
    Accepted,
    Close,
    Effect,
    FileRead,
    Member,
    Note,
    Persist,
    Received,
    Send,
    Started,
    Writable,
)
from replispec.wire.raft.rights import NEEDS as MEMBERS_NEED
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.options import (
    AccessOptions,
    BrokerOptions,
    ControllerOptions,
    LearnerOptions,
    NameServerOptions,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.rights import NEEDS
from replispec.wire.rocketmq.streams import REMOTING
from tests.runtime.storage.writing import carried_out

FILE = "users.yml"
SECRET = "a-long-secret"
USERS = f"""
accounts:
  - {{accessKey: administrator, secretKey: {SECRET}, admin: true}}
  - {{accessKey: a-broker, secretKey: {SECRET}, role: broker}}
  - accessKey: a-client
    secretKey: {SECRET}
    topicPerms: [written=PUB, read=SUB, both=PUB|SUB]
    groupPerms: [mine=SUB]
"""
ADMINISTRATOR, BROKER, CLIENT = (Signer(each, SECRET) for each in ("administrator", "a-broker", "a-client"))
STRANGER, LIAR = Signer("nobody-known", SECRET), Signer("administrator", "another-secret")
ALL_NEEDS = {**NEEDS, **MEMBERS_NEED}
LISTENERS = MappingProxyType(
    {"controller": "controller", "nameserver": "nameserver", "broker": "main", "learner": "main"}
)
ACCESS = AccessOptions(acl_enable=True, acl_file=FILE)
PEER = "10.9.8.7:40000"


def made(role: str, access: AccessOptions = ACCESS, text: str = USERS, secret: str = "") -> Member:
    """A role as its process makes it."""
    storage = SimulatedStorage(Disk(Rng(1)), {FILE: text.encode(), "secret": secret.encode()})
    own: dict[str, Any] = {
        "broker_name": "broker-a",
        "controller_addr": ("127.0.0.1:1",),
        "namesrv_addr": ("127.0.0.1:2",),
    }
    own |= {"mapped_file_size_commit_log": 1 << 20}
    makers: Mapping[str, Callable[[], Member]] = {
        "controller": lambda: controller_members(ControllerOptions(access=access), storage, 1)[0],
        "nameserver": lambda: name_server_members(NameServerOptions(access=access), storage, 1)[0],
        "broker": lambda: broker_members(
            BrokerOptions(**own, access=access, ha_allowed_hosts="10.0.0.1"), storage, 1
        )[0],
        "learner": lambda: learner_members(LearnerOptions(**own, access=access), storage, 1)[0],
    }
    return makers[role]()


@dataclass
class Stage:
    """One role and one peer of it; what it wants written is."""

    member: Member
    now_ms: int = 1_000_000
    opaque: int = 0
    connection: int = 1

    def start(self) -> Stage:
        """Until everything that the start brings is done, and the peer is connected."""
        self.give(Started(self.now_ms, dict(self.member.node.listeners)))
        self.give(FileRead(FILE, USERS.encode(), self.now_ms))
        return self.connect()

    def connect(self, peer: str = PEER) -> Stage:
        """Another peer."""
        self.connection += 1
        self.give(Accepted(self.connection, LISTENERS[self.member.role], peer, self.now_ms))
        return self

    def give(self, event: object) -> list[Effect]:
        """All that comes of an event."""
        effects = list(self.member.node.receive(event))  # type: ignore[arg-type]
        for effect in tuple(effects):
            if isinstance(effect, Persist):
                effects += self.give(carried_out(effect, self.member.stores, self.now_ms))
            elif isinstance(effect, Send) and effect.tell:
                effects += self.give(Writable(effect.connection, self.now_ms))
        return effects

    def ask(self, request: Command, *, signed: Signer | None = None) -> list[Effect]:
        """All that comes of a request, signed as whoever it is."""
        self.opaque += 1
        fields = request.header.ext_fields
        if signed is not None:
            fields = signed(fields, request.body)
        header = replace(request.header, ext_fields=fields, opaque=self.opaque)
        return self.give(Received(self.connection, Command(header, request.body).encode(), self.now_ms))

    def answer(self, request: Command, *, signed: Signer | None = None) -> Command:
        """The answer to it, which comes at once."""
        return answers(self.ask(request, signed=signed))[-1]


def answers(effects: list[Effect], connection: int | None = None) -> list[Command]:
    """What was sent to a peer that connected itself."""
    buffer = FrameBuffer(REMOTING)
    found: list[Command] = []
    for effect in effects:
        if isinstance(effect, Send) and effect.connection > 0 and connection in (None, effect.connection):
            found += map(decode_command, buffer.receive(bytes(effect.data)))
    return found


def notes(effects: list[Effect], what: str) -> list[Note]:
    """Lines that say this."""
    return [effect for effect in effects if isinstance(effect, Note) and effect.what == what]


def is_closed(effects: list[Effect]) -> bool:
    """Whether a connection of a peer was ended."""
    return any(isinstance(effect, Close) and effect.connection > 0 for effect in effects)


def request(code: int, *, flag: int = RemotingFlag.REQUEST, body: bytes = b"", **fields: str) -> Command:
    """A request with these fields, and nothing else in it."""
    header = RemotingHeader(code=code, flag=int(flag), ext_fields=dict(fields))
    return Command(header, body)
