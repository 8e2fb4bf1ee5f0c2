"""Three controllers of one group in a few lines, and an adapter that starts them inside of the test.

What the group agreed on is one object that all members hold; who is alive each knows for itself. Every choice
is a small method of `GoodGroup`, so that a fault is one that is overridden.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import trio

from replispec.conformance.adapters import AdapterDescription, Living, Starting
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import GetMetadataResponse
from tests.conformance.subjects.controller import HEARTBEAT_TIMEOUT_MS
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import Alive, Answer, BrokerSet, Channel, Effect
from tests.conformance.subjects.remoting_server import RemotingServer

ABILITIES = frozenset({"crash", "reset", "keep_storage", "start_at_once", "suspend"})
DESCRIBED = AdapterDescription("inside", "1", frozenset({"controller"}), ABILITIES)
# What every controller answers, active or not.
OF_EVERYBODY = (RequestCode.CONTROLLER_GET_METADATA_INFO, RequestCode.BROKER_HEARTBEAT)
MEMBERS = 3
NOBODY = 0


class Member(GoodController):
    """One controller of a group, while its process lives."""

    def __init__(self, group: GoodGroup, address: str) -> None:
        super().__init__(trio.current_time, address)
        self.group = group
        self.killed = False
        self.sets, self.granted, self.emptied = group.sets, group.granted, group.emptied

    @property
    def active(self) -> bool:
        """Whether this one is the active one."""
        return self.group.active == self.address

    def replies(self, request: Command, answer: Answer) -> list[Effect]:
        """None, once the group has stopped."""
        return super().replies(request, answer) if self.group.answers(self, request) else []

    def answer_to(self, request: Command) -> Answer:
        """Everything but a few questions is refused by who is not active."""
        if not self.group.is_ready(self):
            return Answer(ResponseCode.SYSTEM_ERROR, remark="not ready")
        if self.group.refuses(self, request.header.code):
            self.group.refused(self, request)
            return Answer(ResponseCode.CONTROLLER_NOT_LEADER, remark="not the active one")
        return super().answer_to(request)

    def get_metadata(self, _request: Command) -> Answer:
        """1005: what is known of the group."""
        names = self.group.names_active(self)
        header = GetMetadataResponse(
            group="group",
            controller_leader_id=names and f"n{self.group.addresses.index(names)}",
            controller_leader_address=names,
            is_leader=self.group.says_active(self),
            peers=";".join(self.group.addresses),
        )
        return Answer(header=header)

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        """Brokers are gone; only the active one does something about it."""
        if self.group.acts(self) and not self.killed:
            return super().lose(brokers)
        for key in brokers:
            del self.alive[key]
        return []

    def begins(self) -> None:
        """This one became active: masters that it never heard count from now on."""
        for broker_set in self.sets.values():
            key = (broker_set.name, broker_set.master or NOBODY)
            if broker_set.master is not None and key not in self.alive:
                lasts_s = HEARTBEAT_TIMEOUT_MS / 1000
                self.alive[key] = Alive(self.unheard, self.now_s(), lasts_s, 0, 0, 0)

    unheard: Channel = -1
    """The connection of who was never heard."""

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        """As the group has it."""
        return self.group.candidates(self, broker_set, super().candidates(broker_set))


class GoodGroup:
    """Three controllers that do it right, as an adapter brings them to life."""

    def __init__(self, nursery: trio.Nursery, reserved: set[str]) -> None:
        self.described = DESCRIBED
        self.reserved = reserved
        self.sets: dict[str, BrokerSet] = {}
        self.granted: dict[str, int] = {}
        self.emptied: dict[str, BrokerSet] = {}
        self.addresses: list[str] = []
        self.active: str | None = None
        self.running: dict[str, _Process] = {}
        self.wiped: set[str] = set()
        self._nursery = nursery

    # What a fault overrides

    def refuses(self, member: Member, code: int) -> bool:
        """Whether a member refuses a request because it is not active."""
        return code not in OF_EVERYBODY and not member.active

    def is_ready(self, member: Member) -> bool:  # noqa: ARG002
        """Whether a member that is asked can say anything yet."""
        return True

    def answers(self, member: Member, request: Command) -> bool:  # noqa: ARG002
        """Whether a request has an answer."""
        return True

    def refused(self, member: Member, request: Command) -> None:
        """What becomes of a request that is refused: nothing."""

    def names_active(self, member: Member) -> str | None:  # noqa: ARG002
        """Whom a member names."""
        return self.active

    def says_active(self, member: Member) -> bool:
        """Whether a member says of itself that it is active."""
        return member.active

    def acts(self, member: Member) -> bool:
        """Whether a member elects when a broker is lost."""
        return member.active

    def candidates(self, member: Member, broker_set: BrokerSet, found: list[int]) -> list[int]:  # noqa: ARG002
        """Who may be elected."""
        return found

    def changes(self, member: Member) -> None:
        """Another member becomes active."""
        member.begins()

    def elects(self, able: Sequence[Member]) -> Member | None:
        """Who becomes active of those that live: any of a majority."""
        return able[0] if 2 * len(able) > MEMBERS else None

    def all_gone(self) -> None:
        """No member lives any more; what they wrote does."""

    def all_forgotten(self) -> None:
        """No member has a store any more."""
        for each in (self.sets, self.granted, self.emptied):
            each.clear()

    def stops_still(self, member: Member) -> None:
        """A member gets no processor time from now on."""

    # The adapter

    async def start(self, starting: Starting) -> Living:
        """One member, at the address that it was given."""
        self.addresses = list(starting.controllers)
        process = _Process(lambda _now_s, address: Member(self, address))
        await self._nursery.start(process.run, int(starting.address.rpartition(":")[2]))
        self.running[starting.name] = process
        self.wiped.discard(starting.name)
        self._settle()
        return Living(starting.name, {"remoting": starting.address})

    async def crash(self, name: str) -> None:
        """End it at once."""
        process = self.running.pop(name)
        process.member.killed = True
        process.scope.cancel()
        await process.gone.wait()
        if not self.running:
            self.all_gone()
        self._settle()

    stop = crash

    async def suspend(self, name: str) -> None:
        """Take the processor from it."""
        self.running[name].gate = trio.Event()
        self.stops_still(self.running[name].member)
        self._settle()

    async def resume(self, name: str) -> None:
        """Give it back."""
        self.running[name].gate.set()

    async def reset(self, name: str) -> None:
        """What the group agreed on is kept as long as one of them has a store."""
        self.wiped.add(name)
        if len(self.wiped) == len(self.addresses):
            self.all_forgotten()

    def lives(self, name: str) -> bool:
        """Whether it runs."""
        return name in self.running

    def how_ended(self, name: str) -> str:  # noqa: ARG002
        """Nobody ends by itself."""
        return ""

    def _settle(self) -> None:
        """The active one stays while it lives and has a majority; else another one follows, or nobody."""
        able = [each.member for each in self.running.values() if each.gate.is_set()]
        before = next((each for each in able if each.address == self.active), None)
        chosen = before if before and self.elects(able) else self.elects(able)
        self.active = chosen.address if chosen else None
        if chosen is not None and chosen is not before:
            self.changes(chosen)


class _Process(RemotingServer):
    """A member that is served until it is ended, and stands still while its gate is closed."""

    def __init__(self, make: Callable[[Any, str], Member]) -> None:
        super().__init__(make)
        self.scope, self.gone = trio.CancelScope(), trio.Event()
        self.gate = trio.Event()
        self.gate.set()

    @property
    def member(self) -> Member:
        """The core that is served."""
        assert isinstance(self._core, Member)
        return self._core

    async def run(self, port: int, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until the scope is cancelled."""
        with self.scope:
            await self.serve(port, task_status=task_status)
        self.gone.set()

    async def _connection(self, stream: trio.SocketStream) -> None:
        await super()._connection(_Gated(stream, self))  # type: ignore[arg-type]  # as far as it is used


class _Gated:
    """A stream from which nothing is read while a process stands still."""

    def __init__(self, stream: trio.SocketStream, process: _Process) -> None:
        self._stream, self._process = stream, process

    async def receive_some(self, size: int) -> bytes:
        data = await self._stream.receive_some(size)
        await self._process.gate.wait()
        return bytes(data)

    async def send_all(self, data: bytes) -> None:
        await self._stream.send_all(data)


def before(group: GoodGroup) -> tuple[dict[str, BrokerSet], dict[str, int]]:
    """What the group has agreed on, as it is now."""
    return copy.deepcopy(group.sets), dict(group.granted)
