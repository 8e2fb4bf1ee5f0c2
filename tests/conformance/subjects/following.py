"""A broker or learner that registers and copies a master's log, in few lines, and an adapter that starts it.

Every choice is a small method of `GoodFollower`, so that a fault is one that is overridden.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import trio

from replispec.conformance.adapter_requests import AdapterRefused
from replispec.conformance.adapters import AdapterDescription, Living, Starting
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import EpochEntry, EpochEntryCache
from tests.conformance.subjects.answering import Answering
from tests.conformance.subjects.asking import Lost, Peer
from tests.conformance.subjects.records import Answer
from tests.conformance.subjects.registering import ABILITIES
from tests.conformance.subjects.remoting_server import HOST, Broken, RemotingServer

DESCRIBED = AdapterDescription("inside", "1", frozenset({"broker", "async_learner"}), ABILITIES)
PAUSE_S, PERIOD_S, REPORTED_S, SILENT_S = 1.0, 2.0, 5.0, 20.0
ANSWER, TRANSFER, ENTRY = struct.Struct(">iiqi"), struct.Struct(">iiqiqq"), struct.Struct(">iq")
HANDSHAKE, REPORT = struct.Struct(">ihhq"), struct.Struct(">iq")
IN_HANDSHAKE, IN_TRANSFER = 1, 2
Epochs = list[tuple[int, int]]
"""Numbers of epochs with where they start, ascending."""


@dataclass
class Store:
    """What is on the disk: identity, and the log as its end and its epochs."""

    told: int = 0
    code: str = ""
    granted: bool = False
    address: str = ""
    end: int = 0
    confirmed: int = 0
    epochs: Epochs = field(default_factory=list)
    asked: tuple[int, int, frozenset[int]] = (0, 0, frozenset())
    """What was asked for last as a master: in which masterEpoch, instead of which set's epoch, which set."""


class GoodFollower:
    """A broker or learner that does it right, while its process lives."""

    def __init__(self, starting: Starting, store: Store, address: str, nth: int) -> None:
        self.starting, self.store, self.address, self.nth = starting, store, address, nth
        self.is_learner = starting.role == "async_learner"
        self.controller = Peer(starting.controllers[0])
        self.names = Peer(starting.name_servers[0])
        self.copying = trio.CancelScope()
        self.set_names = {"clusterName": starting.cluster, "brokerName": starting.set}

    # What a fault overrides: a broker's identity

    def applies_for(self, told: int) -> int:
        """Which id it applies for."""
        return told

    def kept_code(self) -> str:
        """Its check code."""
        return self.store.code or f"code {self.nth}"

    def own_address(self) -> str:
        """At which address it registers."""
        return self.address

    async def after_a_failure(self) -> None:
        """A question had no answer that it could go on with: it waits before it asks again."""
        await trio.sleep(PAUSE_S)

    def after_a_refusal(self) -> None:
        """Its application was refused: it has no id."""
        self.store.told, self.store.code = 0, ""

    def waits_after(self, refusals: int) -> float:
        """How long it waits after so many refusals of an application."""
        return PAUSE_S if refusals > 1 else 0.0

    def asks_for_a_master(self) -> bool:
        """Whether it asks for an election when nobody is named."""
        return True

    def named_by(self, code: str, header: Mapping[str, object]) -> bool:
        """Whether the answer to its election names a master."""
        return code in ("SUCCESS", "CONTROLLER_MASTER_STILL_EXIST") and _names_master(header)

    def registers_again(self, times: int, code: str) -> bool:  # noqa: ARG002
        """Whether it registers again because a controller says that it does not know it."""
        return True

    def asks_again(self) -> bool:
        """Whether it goes on to ask controllers that do not answer."""
        return True

    # What a fault overrides: replication

    def handshake(self) -> bytes:
        """How it introduces itself."""
        return HANDSHAKE.pack(IN_HANDSHAKE, 0, self.says_learner(), 0 if self.is_learner else self.store.told)

    def says_learner(self) -> bool:
        """Whether it says that it is a learner."""
        return self.is_learner

    def common(self, entries: Epochs, end: int) -> int | None:
        """Up to where its log is that of a master with these epochs and this end; None when it is nowhere."""
        if not self.store.end:
            return 0
        for number, start in reversed(self.store.epochs):
            if self.is_common((number, start), entries):
                ours = _end_of(self.store.epochs, number, self.store.end)
                return min(ours, _end_of(entries, number, end))
        return None

    def is_common(self, epoch: tuple[int, int], entries: Epochs) -> bool:
        """Whether the master has an epoch of ours."""
        return epoch in entries

    def cut(self, at: int) -> None:
        """Leave the log with what comes before a place."""
        self.store.end = at
        self.store.confirmed = min(self.store.confirmed, at)
        self.store.epochs = [each for each in self.store.epochs if each[1] < at]

    def confirms(self, told: int) -> int:
        """Up to where its log is confirmed when its master says this."""
        return min(told, self.store.end)

    def notes(self, epoch: int, size: int) -> bool:  # noqa: ARG002
        """Whether it notes the epoch that a header with so many bytes names."""
        return epoch not in [number for number, _ in self.store.epochs]

    def is_possible(self, epoch: int, start: int) -> bool:
        """Whether it goes on with a master that names this epoch."""
        return epoch >= 0 and start >= 0

    def takes_early(self) -> bool:
        """Whether it goes on with a master that sends before it has answered."""
        return False

    def is_gone(self, silent_s: float) -> bool:
        """Whether a master that was silent for so long is gone."""
        return silent_s >= SILENT_S

    def follows(self, offset: int) -> bool:
        """Whether a transfer from here is taken."""
        return offset == self.store.end

    def takes_a_second_answer(self) -> bool:
        """Whether a second answer to its handshake leaves the connection as it is."""
        return False

    def torn(self, size: int) -> None:
        """So much of a transfer has come when its connection ends: nothing is kept."""

    def partly(self, size: int) -> int | None:  # noqa: ARG002
        """What it reports when so much of a transfer has come: nothing."""
        return None

    def first_report(self, end: int) -> int:  # noqa: ARG002
        """What it reports after the handshake with a master of this end."""
        return self.store.end

    def reports(self, times: int) -> bool:  # noqa: ARG002
        """Whether it reports once more, after so many times, because nothing else was to be said."""
        return True

    def reports_growth(self) -> bool:
        """Whether it reports what it has taken."""
        return True

    def hears_of_masters(self) -> bool:
        """Whether it listens when it is told who is master."""
        return True

    def before_the_answer(self) -> bytes:
        """What it says on a connection before its handshake is answered."""
        return b""

    def stands_still(self) -> bool:
        """Whether a learner that is named master copies from nobody."""
        return True

    # Its life

    async def run(self) -> None:
        """Register, find the master's log, copy it, until it is ended."""
        try:
            await self.live()
        finally:
            self.controller.leave()
            self.names.leave()

    async def live(self) -> None:
        """All that it does."""
        async with trio.open_nursery() as nursery:
            if self.is_learner:
                while not (await self.controller.ask("CONTROLLER_GET_METADATA_INFO"))[0]:
                    if not self.asks_again():
                        await trio.sleep_forever()
                    await trio.sleep(PAUSE_S)
            else:
                await self.registered()
                nursery.start_soon(self._ask_again)
            while True:
                if self.is_learner and self.stands_still() and await self._is_named_master():
                    await trio.sleep(PERIOD_S)
                    continue
                log = await self.announced(self.store.told or 2)
                with trio.CancelScope() as self.copying:
                    await self.copy(log)
                    await trio.sleep(PERIOD_S)

    async def _is_named_master(self) -> bool:
        own = {"brokerName": self.starting.set}
        _, header = await self.controller.ask("CONTROLLER_GET_REPLICA_INFO", **own)
        return header.get("masterBrokerId") == str(self.store.told or 2)

    async def announced(self, route_id: int) -> str:
        """Tell the name server; where it says that the master's log is."""
        fields: dict[str, object] = {**self.set_names, "brokerAddr": self.address, "brokerId": route_id}
        fields |= {"haServerAddr": self.address, "enableActingMaster": "false", "compressed": "false"}
        _, header = await self.names.ask("REGISTER_BROKER", **fields, bodyCrc32=0)
        return str(header.get("haServerAddr", ""))

    async def feed(self, stream: trio.SocketStream) -> None:
        """Somebody wants to copy from it: it is no master."""
        await stream.aclose()

    def handlers(self) -> Mapping[int, Callable[[Command], Answer]]:
        """What else it answers at its own address, by the codes of requests."""
        return {}

    def moved(self) -> None:
        """Another broker is master."""
        if self.hears_of_masters():
            self.copying.cancel()

    async def registered(self) -> None:
        """Get an id, register with it, and find a master."""
        store, refusals = self.store, 0
        while not store.granted:
            if not store.told:
                code, header = await self.controller.ask("CONTROLLER_GET_NEXT_BROKER_ID", **self.set_names)
                told = int(str(header["nextBrokerId"])) if code == "SUCCESS" else 0
                if not told:
                    await self.after_a_failure()
                    continue
                store.told, store.code = self.applies_for(told), self.kept_code()
            applied = {**self.set_names, "appliedBrokerId": store.told, "registerCheckCode": self.kept_code()}
            code, _ = await self.controller.ask("CONTROLLER_APPLY_BROKER_ID", **applied)
            if code == "SUCCESS":
                store.granted = True
            elif code and code != "CONTROLLER_NOT_LEADER":
                refusals += 1
                self.after_a_refusal()
                await trio.sleep(self.waits_after(refusals))
            else:
                await self.after_a_failure()
        if not await self.register() and self.asks_for_a_master():
            await self.elect()
        store.address = self.address

    async def register(self) -> bool:
        """Register; whether a master was named."""
        while True:
            own = {**self.set_names, "brokerId": self.store.told, "brokerAddress": self.own_address()}
            code, header = await self.controller.ask("CONTROLLER_REGISTER_BROKER", **own)
            if code == "SUCCESS":
                return _names_master(header)
            await self.after_a_failure()

    async def elect(self) -> None:
        """Ask for a master until one is named."""
        while True:
            own = {**self.set_names, "brokerId": self.store.told, "designateElect": "false"}
            code, header = await self.controller.ask("CONTROLLER_ELECT_MASTER", **own)
            if self.named_by(code, header):
                return
            if code == "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED" and self.registers_again(0, code):
                await self.register()
            await trio.sleep(PAUSE_S)

    async def _ask_again(self) -> None:
        for times in itertools.count():
            await trio.sleep(PERIOD_S)
            own = {"brokerName": self.starting.set}
            code, _ = await self.controller.ask("CONTROLLER_GET_REPLICA_INFO", **own)
            unknown = ("CONTROLLER_BROKER_METADATA_NOT_EXIST", "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED")
            if code in unknown and self.registers_again(times, code):
                await self.register()

    async def copy(self, log: str) -> None:
        """Copy the log that is there, until that ends."""
        if not log:
            return
        host, _, port = log.rpartition(":")
        try:
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all(self.handshake() + self.before_the_answer())
                await _Copying(self, stream).run()
        except (OSError, Lost, *Broken):
            return


class _Copying:
    """One connection to a master's log."""

    def __init__(self, follower: GoodFollower, stream: trio.SocketStream) -> None:
        self._follower, self._stream = follower, stream
        self._buffer = bytearray()
        self._answered = False
        self._repeated = 0
        self._heard_s = trio.current_time()

    async def run(self) -> None:
        while True:
            data = b""
            with trio.move_on_after(REPORTED_S) as waited:
                data = await self._stream.receive_some(65536)
            if waited.cancelled_caught:
                if self._follower.is_gone(trio.current_time() - self._heard_s):
                    raise Lost
                if self._answered and self._follower.reports(self._repeated):
                    self._repeated += 1
                    await self._report(self._follower.store.end)
                continue
            if not data:
                self._follower.torn(max(0, len(self._buffer) - TRANSFER.size))
                raise Lost
            self._heard_s = trio.current_time()
            self._buffer += data
            while await self._frame():
                pass
            if (partly := self._follower.partly(len(self._buffer) - TRANSFER.size)) is not None:
                await self._report(partly)

    async def _frame(self) -> bool:
        """Take one whole frame; False when none is there."""
        if len(self._buffer) < TRANSFER.size and not self._is_answer():
            return False
        form = ANSWER if self._is_answer() else TRANSFER
        if len(self._buffer) < form.size:
            return False
        state, size, *fields = form.unpack_from(self._buffer)
        if len(self._buffer) < form.size + size:
            return False
        body = bytes(self._buffer[form.size : form.size + size])
        del self._buffer[: form.size + size]
        if state == IN_HANDSHAKE:
            await self._answer(fields[0], body)
        else:
            await self._transfer(size, *fields)
        return True

    def _is_answer(self) -> bool:
        return self._buffer[:4] == IN_HANDSHAKE.to_bytes(4, "big")

    async def _answer(self, end: int, body: bytes) -> None:
        follower = self._follower
        if self._answered:
            if follower.takes_a_second_answer():
                return
            raise Lost
        at = follower.common([*ENTRY.iter_unpack(body)], end)
        if at is None:
            raise Lost
        follower.cut(at)
        self._answered = True
        await self._report(follower.first_report(end))

    async def _transfer(self, size: int, offset: int, epoch: int, start: int, confirmed: int) -> None:
        follower, store = self._follower, self._follower.store
        if not self._answered and follower.takes_early():
            return
        if not self._answered or (size and not follower.follows(offset)):
            raise Lost
        if not follower.is_possible(epoch, start):
            raise Lost
        if follower.notes(epoch, size):
            store.epochs.append((epoch, start))
        if size:
            store.end += size
            if follower.reports_growth():
                await self._report(store.end)
        store.confirmed = follower.confirms(confirmed)

    async def _report(self, end: int) -> None:
        await self._stream.send_all(REPORT.pack(IN_TRANSFER, end))


@dataclass
class FollowingAdapter:
    """Stands in for `replispec.conformance.adapters.Adapter`."""

    make: type[GoodFollower]
    nursery: trio.Nursery
    reserved: set[str]
    described: AdapterDescription = DESCRIBED
    stores: dict[str, Store] = field(default_factory=dict)
    living: dict[str, trio.CancelScope] = field(default_factory=dict)
    starts: int = 0

    async def start(self, starting: Starting) -> Living:
        """A broker or learner that serves one question at its own address."""
        self.starts += 1
        scope = self.living[starting.name] = trio.CancelScope()
        own, replication = await self.nursery.start(self._run, scope, starting, self.starts)
        return Living(starting.name, {"remoting": own, "replication": replication})

    def kept(self, name: str) -> Store:
        """The store of this name."""
        return self.stores.setdefault(name, Store())

    async def crash(self, name: str) -> None:
        """End it at once."""
        self.living.pop(name).cancel()
        await trio.lowlevel.checkpoint()

    stop = crash

    async def reset(self, name: str) -> None:
        """Forget what it wrote."""
        if self.stores.pop(name, None) is None:
            raise AdapterRefused("UNKNOWN_INSTANCE", "")

    def lives(self, name: str) -> bool:
        """Whether it runs."""
        return name in self.living

    def how_ended(self, name: str) -> str:  # noqa: ARG002
        """Nobody ends by itself."""
        return ""

    async def _run(
        self,
        scope: trio.CancelScope,
        starting: Starting,
        nth: int,
        *,
        task_status: trio.TaskStatus[tuple[str, str]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        store = self.kept(starting.name)
        asked = _Asked(store)
        server = RemotingServer(lambda _now_s, _address: asked)
        port = int(starting.address.rpartition(":")[2]) if starting.address else 0
        with scope:
            async with trio.open_nursery() as nursery:
                address = await nursery.start(server.serve, port)
                follower = self.make(starting, store, address, nth)
                listeners = await trio.open_tcp_listeners(0, host=HOST)
                nursery.start_soon(trio.serve_listeners, follower.feed, listeners)
                task_status.started((address, f"{HOST}:{listeners[0].socket.getsockname()[1]}"))
                asked.moved = follower.moved
                asked.handlers |= follower.handlers()
                await follower.run()


class _Asked(Answering):
    """What a broker says of its epochs."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self.moved: Callable[[], None] = lambda: None
        self.handlers = {
            RequestCode.GET_BROKER_EPOCH_CACHE: self._epochs,
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._told,
        }

    def _told(self, _request: Command) -> Answer:
        self.moved()
        return Answer()

    def _epochs(self, _request: Command) -> Answer:
        entries = [EpochEntry(None, number, start) for number, start in self._store.epochs]
        return Answer(body=EpochEntryCache(0, "", "", entries, self._store.end).encode())


def _end_of(epochs: Sequence[tuple[int, int]], number: int, end: int) -> int:
    """Where an epoch ends in a log with this end."""
    later = [start for each, start in epochs if each > number]
    return min([*later, end])


def _names_master(header: Mapping[str, object]) -> bool:
    return bool(header.get("masterBrokerId"))
