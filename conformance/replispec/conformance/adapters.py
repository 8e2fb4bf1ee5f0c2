"""The runner's side of the adapter protocol: a program that brings subjects to life, and is not trusted.

Whatever an adapter does, the run ends in bounded time and memory and leaves no process of the adapter behind.
What it does against the protocol is an AdapterFault: counted against it, never against a subject.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.conformance.adapter_requests import (
    SUITE,
    AdapterFault,
    AdapterRefused,
    AdapterRequest,
    AdapterRequests,
    line,
    word,
)
from replispec.conformance.leftovers import end_marked, marked_environment
from replispec.conformance.wires import Unreachable, connect
from replispec.runtime.documents import official_seam
from replispec.runtime.documents.delimited import DocumentBuffer
from replispec.runtime.primitives.errors import RemoteProtocolError

PROTOCOL = 1
LOOPBACK = "127.0.0.1"
ROLES = ("controller", "name_server", "broker", "async_learner")
PURPOSES = ("remoting", "replication")
START_S = 60.0
STOP_S = 20.0
# After the end of its input.
LEAVE_S = 10.0
INSTANCES_MAXIMUM = 1000
_PIECE_BYTES = 65536
_SAID_BYTES_MAXIMUM = 2048
_LOOK_S = 0.02
# How long the last words and the status of an adapter that ended are waited for.
_LAST_WORDS_S = 1.0
_SHOWN_BYTES = 24
# An end that is refused so has come all the same: by itself before, or by force when its time was over.
_GONE_ALL_THE_SAME = ("UNKNOWN_INSTANCE", "TIMED_OUT")


@dataclass(frozen=True, slots=True)
class AdapterDescription:
    """What an adapter says of itself; roles and abilities in lower case, as `name_server` and `crash`."""

    implementation: str
    release: str
    roles: frozenset[str]
    abilities: frozenset[str]


@dataclass(slots=True)
class Living:
    """An instance that was started: where it listens, by purpose in lower case; how it ended by itself."""

    name: str
    listening: dict[str, str] = field(default_factory=dict)
    exited: str = ""


@dataclass(frozen=True, slots=True)
class Starting:
    """What an instance shall be. `role` and `purposes` in lower case; addresses as HOST:PORT.

    `address` is where it must listen for commands, `member` a controller's place in `controllers`. `begins`:
    nothing runs yet for whoever asks, who waits until nobody else asks for more of what lives on meanwhile.
    """

    name: str
    role: str
    cluster: str = ""
    set: str = ""
    controllers: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ("remoting",)
    at_once: bool = False
    address: str = ""
    member: int = 0
    begins: bool = False


class Adapter:
    """An adapter that runs. Requests are made one after another, whoever makes them."""

    def __init__(self, process: trio.Process, patience: float) -> None:
        self.described = AdapterDescription("", "", frozenset(), frozenset())
        self.said = b""  # the end of what it said on its standard error
        self.reserved: set[str] = set()  # addresses that cases chose for instances
        self._buffer = DocumentBuffer()
        self._begins = b""  # how the piece that it wrote last begins
        self._silent = trio.Event()  # its standard error has ended
        self._process = process
        self._patience = max(patience, 1.0)
        self._requests = AdapterRequests(self._send, self._half_said, self._patience)
        self._living: dict[str, Living] = {}
        self._ended: list[Living] = []  # said to have ended by themselves; nobody has looked yet
        self._names: set[str] = set()
        self._leaving = False
        self.is_reaped = False

    async def describe(self) -> None:
        """Ask what it brings to life. Raises AdapterFault."""
        try:
            told = await self._ask("description", describe=wire.Describe(protocol=PROTOCOL))
        except AdapterRefused as refused:
            raise AdapterFault(f"it does not describe itself: {refused}") from None
        if told.protocol != PROTOCOL:
            raise AdapterFault(f"it speaks version {told.protocol} of the protocol, not {PROTOCOL}")
        self.described = AdapterDescription(
            line(told.implementation, 64),
            line(told.release, 64),
            frozenset(word(wire.Role, each) for each in told.roles),
            frozenset(word(wire.Ability, each) for each in told.abilities),
        )

    async def start(self, starting: Starting) -> Living:
        """Bring an instance to life. Raises AdapterRefused, AdapterFault."""
        if len(self._names) >= INSTANCES_MAXIMUM and starting.name not in self._names:
            raise AdapterRefused(SUITE, f"a run starts at most {INSTANCES_MAXIMUM} instances")
        self._names.add(starting.name)
        living = Living(starting.name)

        asked = {}

        async def request() -> Mapping[str, Any]:
            self._living[starting.name] = living
            asked["start"] = await self._start_of(starting)
            return asked

        def noted(ready: Any, _: AdapterRefused | None) -> None:
            if ready is None:
                self._living.pop(starting.name, None)
            else:
                living.listening = _listening(asked["start"], ready)

        within_s = START_S * self._patience
        await self._requests.ask(AdapterRequest("ready", request, within_s, noted, starting.begins))
        if living.exited:
            await _gone(living)
        elif not starting.at_once:
            for address in living.listening.values():
                if not await _takes(address) and not living.exited:
                    raise AdapterFault(f"it says that {starting.name} listens at {address}: nobody does")
        return living

    async def _start_of(self, starting: Starting) -> Any:
        """The request. A free port is chosen as late as that: who waits for a turn waits long."""
        chooses = "choose_ports" in self.described.abilities
        asked = wire.Start(
            instance=starting.name,
            role=_spelt(wire.Role, starting.role),
            listen=[
                wire.Endpoint(
                    purpose=_spelt(wire.EndpointPurpose, each),
                    host=LOOPBACK,
                    port=await _port(starting, each, chooses=chooses),
                )
                for each in starting.purposes
            ],
            cluster_name=starting.cluster,
            broker_name=starting.set,
            controllers=starting.controllers,
            name_servers=starting.name_servers,
            ready_within_ms=round(START_S * self._patience * 1000),
            at_once=starting.at_once,
        )
        if starting.role == "controller" and starting.controllers:
            asked.member = starting.member
        return asked

    async def crash(self, name: str) -> None:
        """End an instance at once. Raises AdapterRefused, AdapterFault."""
        await self._end(name, crash=wire.Crash(instance=name))

    async def stop(self, name: str) -> None:
        """End an instance in order. Raises AdapterRefused, AdapterFault."""
        within_s = STOP_S * self._patience
        await self._end(name, within_s, stop=wire.Stop(instance=name, within_ms=round(within_s * 1000)))

    async def suspend(self, name: str) -> None:
        """Take the processor from an instance. Raises AdapterRefused, AdapterFault."""
        await self._ask("done", suspend=wire.Suspend(instance=name))

    async def resume(self, name: str) -> None:
        """Give the processor back. Raises AdapterRefused, AdapterFault."""
        await self._ask("done", resume=wire.Resume(instance=name))

    async def reset(self, name: str) -> None:
        """Remove what an instance wrote. Raises AdapterRefused, AdapterFault."""
        await self._ask("done", reset=wire.Reset(instance=name))

    def lives(self, name: str) -> bool:
        """Whether an instance was started and neither ended by itself nor was ended."""
        return name in self._living and not self._living[name].exited

    def how_ended(self, name: str) -> str:
        """How an instance ended by itself; empty when it did not."""
        return self._living[name].exited if name in self._living else ""

    def ended_by_themselves(self) -> list[str]:
        """A line for every instance that ended without being asked to."""
        return [f"{each.name}: {each.exited}" for each in self._living.values() if each.exited]

    async def _end(self, name: str, within_s: float = 0.0, **request: Any) -> None:
        living = self._living[name]

        def noted(_: Any, refused: AdapterRefused | None) -> None:
            # What could not be ended lives on, and may be ended later.
            if refused is None or refused.reason in _GONE_ALL_THE_SAME:
                self._living.pop(name, None)

        await self._requests.ask(AdapterRequest("done", partial(_as_it_is, request), within_s, noted))
        for address in living.listening.values():
            if await _takes(address):
                raise AdapterFault(f"it says that {name} is gone, and {address} still takes connections")

    async def _ask(self, wanted: str, **request: Any) -> Any:
        """Make one request that changes nothing here, and give the content of its answer."""
        return await self._requests.ask(AdapterRequest(wanted, partial(_as_it_is, request)))

    async def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(data)

    async def put(self) -> None:
        """Put to it what is asked, as long as it lives. Raises AdapterFault."""
        await self._requests.put()

    async def read(self) -> None:
        """Read what it says until it ends. Raises AdapterFault for what the protocol does not allow."""
        assert self._process.stdout is not None
        try:
            while True:
                data = await self._process.stdout.receive_some(_PIECE_BYTES)
                if not data:
                    break
                self._begins = bytes(data[:_SHOWN_BYTES])
                for document in self._buffer.receive(bytes(data)):
                    self._take(official_seam.decode(wire.AdapterMessage, document, unknown_allowed=True))
                while self._ended:
                    await _gone(self._ended.pop())
            self._buffer.finish()
        except RemoteProtocolError as fault:
            raise AdapterFault(f"what it writes is no message: {fault}; {self._wrote()}") from None
        if not self._leaving:
            how = await self._how_it_ended()
            words = line(self.said.decode("utf-8", "replace").strip().rpartition("\n")[2])
            raise AdapterFault(f"it ended in the middle of the run{how}{f': {words}' if words else ''}")

    def _half_said(self) -> str:
        """What a missing answer may have been mistaken for: bytes that are no whole message."""
        waiting = self._buffer.waiting_bytes
        return f": {waiting} bytes wait for the rest of a message; {self._wrote()}" if waiting else ""

    def _wrote(self) -> str:
        text = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in self._begins)
        return f"last it wrote {self._begins.hex(' ')} ({text})"

    async def _how_it_ended(self) -> str:
        """The status of an adapter that closed its output. It is not reaped before its group is ended."""
        found = None
        with trio.move_on_after(_LAST_WORDS_S):
            await self._silent.wait()
            while found is None:
                found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                await trio.sleep(_LOOK_S)
        if found is None:
            return ""
        return f" with {'status' if found.si_code == os.CLD_EXITED else 'signal'} {found.si_status}"

    def _take(self, message: Any) -> None:
        kind = message.WhichOneof("content")
        if message.request_id == 0:
            self._unasked(kind, message)
        else:
            self._requests.take(message)

    def _unasked(self, kind: str | None, message: Any) -> None:
        if kind is None:
            raise AdapterFault(f"it writes an empty message: is its size a varint? {self._wrote()}")
        if kind != "exited":
            raise AdapterFault(f"it says {kind} without being asked")
        told = message.exited
        living = self._living.get(told.instance)
        if living is None or living.exited:
            raise AdapterFault(f"it says that {line(told.instance)!r} ended, which does not run")
        how = f"signal {told.signal}" if told.HasField("signal") else f"status {told.status}"
        words = line(told.last_words.strip().rpartition("\n")[2])
        living.exited = f"it ended by itself with {how}{f': {words}' if words else ''}"
        self._ended.append(living)

    async def hear(self) -> None:
        """Keep the end of its standard error, whatever it says there."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.receive_some(_PIECE_BYTES):
            self.said = (self.said + bytes(data))[-_SAID_BYTES_MAXIMUM:]
        self._silent.set()

    async def leave(self) -> None:
        """End its input, give it time to go, and end its group. Raises AdapterFault."""
        self._leaving = True
        pid = self._process.pid
        assert self._process.stdin is not None
        await trio.aclose_forcefully(self._process.stdin)
        with trio.move_on_after(LEAVE_S * self._patience):
            # Not reaped before its group is ended: nobody else can get the number meanwhile.
            while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                await trio.sleep(_LOOK_S)
        gone = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        end_group(pid)
        status = await self._process.wait()
        self.is_reaped = True
        if not gone:
            raise AdapterFault(
                f"it did not end within {LEAVE_S * self._patience:g} s of the end of its input"
            )
        if status:
            raise AdapterFault(f"it ended with status {status} at the end of its input, not with 0")


def end_group(pid: int) -> None:
    """End the process group of an adapter that nobody has reaped: also what one that died has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@asynccontextmanager
async def running(command: Sequence[str], patience: float) -> AsyncIterator[Adapter]:
    """An adapter that has described itself. Raises AdapterFault, whatever the body was doing."""
    environment, mark = marked_environment()
    try:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as fault:
        raise AdapterFault(f"it cannot be started: {command[0]}: {fault.strerror}") from None
    adapter = Adapter(process, patience)
    try:
        async with speaking(adapter):
            yield adapter
            await adapter.leave()
    finally:
        # Whether it lives is not asked: that would reap one that died, and leave what it has started.
        if not adapter.is_reaped:
            end_group(process.pid)
            with trio.CancelScope(shield=True):
                await process.wait()
        end_marked(mark)


@asynccontextmanager
async def speaking(adapter: Adapter) -> AsyncIterator[None]:
    """It is heard, what is asked is put to it, and it has described itself. Raises as `running`."""
    faults: list[Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(adapter.hear)
        for task in (adapter.read, adapter.put):
            nursery.start_soon(partial(_watched, task, faults, nursery.cancel_scope))
        try:
            await adapter.describe()
            yield
        except Exception as fault:  # noqa: BLE001  whatever it is: the nursery would wrap it
            faults.append(_fault_in(fault))
        nursery.cancel_scope.cancel()
    if faults:
        if isinstance(faults[0], AdapterFault):
            faults[0].said = adapter.said
        raise faults[0]


def _fault_in(error: Exception) -> Exception:
    """The fault of the adapter among what several cases were ended by at once; else the error itself."""
    if isinstance(error, ExceptionGroup):
        return next(
            (each for each in map(_fault_in, error.exceptions) if isinstance(each, AdapterFault)), error
        )
    return error


def _listening(start: Any, ready: Any) -> dict[str, str]:
    """Where an instance listens, by purpose, as it was asked to. Raises AdapterFault."""
    if ready.instance != start.instance:
        raise AdapterFault(f"it says that {line(ready.instance)!r} is ready, not {start.instance}")
    asked = {word(wire.EndpointPurpose, each.purpose): each.port for each in start.listen}
    found: dict[str, str] = {}
    for each in ready.listening:
        purpose = word(wire.EndpointPurpose, each.purpose)
        if purpose not in asked:
            # Nobody asked for it: its own matter.
            continue
        where = f"{line(each.host)}:{each.port}"
        said = f"it says that {start.instance} listens at {where}"
        if not 0 < each.port < 65536 or each.host != LOOPBACK:
            raise AdapterFault(f"{said}: host {LOOPBACK} and a port from 1 to 65535 are wanted")
        if asked[purpose] not in (0, each.port):
            raise AdapterFault(f"{said}: port {asked[purpose]} was asked for")
        if found.setdefault(purpose, where) != where:
            raise AdapterFault(f"{said}, too, and not only at {found[purpose]}: one place is wanted")
    lacking = [each for each in asked if each not in found]
    if lacking:
        raise AdapterFault(f"it does not say where {start.instance} listens for {lacking[0]}")
    return found


async def _as_it_is(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return request


async def _watched(task: Any, faults: list[Exception], scope: trio.CancelScope) -> None:
    """Speak with it; a fault that is found so ends everything that goes on around it."""
    try:
        await task()
    except AdapterFault as fault:
        faults.append(fault)
        scope.cancel()


async def _gone(living: Living) -> None:
    """Who is said to have ended takes no connections. Raises AdapterFault."""
    for address in living.listening.values():
        if await _takes(address):
            ended = f"it says that {living.name} ended by itself"
            raise AdapterFault(f"{ended}, and {address} still takes connections")


async def _takes(address: str) -> bool:
    try:
        stream = await connect(address)
    except Unreachable:
        return False
    await trio.aclose_forcefully(stream)
    return True


async def _port(starting: Starting, purpose: str, *, chooses: bool) -> int:
    """The port that a start names: one that was fixed before, 0, or a free one."""
    if starting.address and purpose == PURPOSES[0]:
        return int(starting.address.rpartition(":")[2])
    return 0 if chooses else await _free_port()


async def _free_port() -> int:
    listener = (await trio.open_tcp_listeners(0, host=LOOPBACK))[0]
    port: int = listener.socket.getsockname()[1]
    listener.socket.close()
    return port


def _spelt(kind: Any, word: str) -> str:
    """The whole name of a value, from what `word` makes of it."""
    return f"{kind.Name(0).removesuffix('UNSPECIFIED')}{word.upper()}"
