"""A process: opens the listeners of its nodes, runs them until a signal, and says how it ended."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

import trio

from replispec.runtime.net.addresses import join, resolve
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.link import Tap
from replispec.runtime.net.log_shell import JSON, Log, LogError, LogFile
from replispec.runtime.net.node_shell import STOPPED, Bounds, Halted, NodeShell
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.net.sockets import reason_of
from replispec.runtime.net.tap_shell import TapError
from replispec.runtime.world import Level, Member

if TYPE_CHECKING:
    from replispec.runtime.net.seen_shell import SeenServer

EXIT_STOPPED: Final = 0
EXIT_FAILED: Final = 1
BACKLOG: Final = 1_024
ACCEPTS_MAX: Final = 16
"""Connections taken of one listener in one turn of the loop: to take, hear and end each costs 0.3 ms."""
DESCRIPTORS_KEPT: Final = 256
"""Of all descriptors, at most a quarter: for files and for what we dial. No peer is given one of the last."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_ROOM_WAIT_S: Final = 0.1

Addresses = Mapping[str, Mapping[str, str]]
"""Where each listener listens, ADDRESS:PORT, by role and by the listener's name."""


@dataclass(frozen=True, slots=True)
class Process:
    """How a process behaves: `stop_s` is what leaving may take, `make_tap` makes the tap once there is a
    clock (microseconds since 1970) and a log. `open_log` opens the log instead of standard error, `seen_at`
    are the addresses at which metrics and health are served. `sealing`: its connections may have TLS."""

    level: Level = Level.INFO
    stop_s: float = 5.0
    bounds: Bounds = field(default_factory=Bounds)
    make_tap: Callable[[Callable[[], int], Log], Tap] | None = None
    log_form: str = JSON
    open_log: Callable[[], LogFile] | None = None
    seen_at: Sequence[str] = ()
    sealing: Sealing | None = None


class CannotListen(Exception):
    """A listener's address is not to be had."""


def run(members: Sequence[Member], process: Process, *, out: TextIO, errors: TextIO) -> int:
    """Run nodes until SIGTERM or SIGINT and return the exit code.

    One line of JSON on `out` says that all listeners are open: `{"pid": 1, "roles": {role: {listener:
    address}}}`, and `metrics` with the addresses of that if it is served. The log goes to `errors`, or to its
    file. The code is 0 after a signal, 1 when a node halted, a listener
    could not be opened, or our own code failed.
    """
    code = EXIT_STOPPED
    try:
        trio.run(_run, members, process, out, errors)
    except* (Halted, CannotListen, TapError, LogError) as group:
        code = EXIT_FAILED
        errors.writelines(f"replispec: {error}\n" for error in _leaves(group))
    except* Exception as group:  # noqa: BLE001  the outermost shell tells of it and ends
        code = EXIT_FAILED
        errors.write("".join(traceback.format_exception(group)))
    return code


async def serve(
    members: Sequence[Member],
    process: Process,
    log: Log,
    *,
    clock: Clock,
    tap: Tap | None = None,
    stop: trio.Event,
    seen_at: list[str] | None = None,
    task_status: trio.TaskStatus[Addresses] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run nodes until `stop`, and started with the addresses once every listener is open. `seen_at` is given
    those of metrics and health.

    Raises CannotListen, or Halted for the node that asked for it; whatever else it raises is our fault.
    """
    bound: list[tuple[int, str, socket.socket]] = []
    shells: list[NodeShell] = []
    shown: list[socket.socket] = []
    try:
        await _listen_all(members, process, bound, shown)
        if seen_at is not None:
            seen_at += [join(sock.getsockname()) for sock in shown]
        async with trio.open_nursery() as nursery:
            parts = nursery, clock, log, tap, process.bounds, process.sealing
            shells += [NodeShell(member, *parts) for member in members]
            addresses: dict[str, dict[str, str]] = {member.role: {} for member in members}
            for index, name, sock in bound:
                addresses[members[index].role][name] = join(sock.getsockname())
            if shown:
                nursery.start_soon(_seen(shells, log).run, shown)
            if process.sealing is not None:
                nursery.start_soon(process.sealing.watch, log)
            for shell in shells:
                shell.start(addresses[shell.role])
            for index, name, sock in bound:
                nursery.start_soon(_accept, shells[index], name, sock, log)
            task_status.started(addresses)
            await stop.wait()
            for _, _, sock in bound:
                trio.lowlevel.notify_closing(sock)
                sock.close()
            with trio.move_on_after(process.stop_s):
                async with trio.open_nursery() as leaving:
                    for shell in shells:
                        leaving.start_soon(shell.stop)
            for shell in shells:
                shell.ended(STOPPED, "asked to")
            nursery.cancel_scope.cancel()
    finally:
        for shell in shells:
            shell.abandon()
        for sock in (*(sock for _, _, sock in bound), *shown):
            sock.close()


def _seen(shells: Sequence[NodeShell], log: Log) -> SeenServer:
    """Who serves metrics and health. Loaded by whoever wants it: that takes as long as half of a start."""
    from replispec.runtime.net.seen_shell import SeenServer
    from replispec.runtime.seeing.answers import Seen

    nodes = [Seen(shell.role, shell.view, shell.numbers) for shell in shells if shell.view is not None]
    return SeenServer(nodes, log)


async def _listen_all(
    members: Sequence[Member],
    process: Process,
    bound: list[tuple[int, str, socket.socket]],
    shown: list[socket.socket],
) -> None:
    """Open all listeners; those that are open are there when one cannot be. Raises CannotListen."""
    for address in process.seen_at:
        shown += [await _listen("metricsListenAddress", address)]
    for index, member in enumerate(members):
        for name, address in member.node.listeners.items():
            bound += [(index, name, await _listen(name, address))]


async def _run(members: Sequence[Member], process: Process, out: TextIO, errors: TextIO) -> None:
    clock = Clock()
    file = process.open_log() if process.open_log is not None else None
    log = Log(file or errors, process.level, clock.now_us, form=process.log_form)
    seen_at: list[str] = []
    tap = process.make_tap(clock.now_us, log) if process.make_tap is not None else None
    stop = trio.Event()
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_heed_signals, signals, stop, log, members[0].role)
                addresses: Addresses = await nursery.start(
                    partial(serve, members, process, log, clock=clock, tap=tap, stop=stop, seen_at=seen_at)
                )
                metrics = {"metrics": seen_at} if seen_at else {}
                try:
                    out.write(json.dumps({"pid": os.getpid(), "roles": addresses, **metrics}) + "\n")
                    out.flush()
                except OSError as error:
                    # A role serves whatever becomes of its output, which may be a file on a full disk.
                    reason = {"reason": reason_of(error)}
                    for member in members:
                        log.write(Level.ERROR, member.role, "nobody is told that it listens", reason)
    finally:
        log.end(members[0].role)
        if tap is not None:
            tap.close()
        if file is not None:
            file.close()


async def _heed_signals(signals: AsyncIterator[int], stop: trio.Event, log: Log, role: str) -> None:
    async for number in signals:
        if number != signal.SIGHUP:
            stop.set()
            return
        # As a terminal that was closed sends it, and whoever has moved a log file away.
        log.reopen()
        log.write(Level.INFO, role, "hangup: the log goes on, in a new file if it has one")


async def _listen(name: str, address: str) -> socket.socket:
    """A listening socket. Raises CannotListen."""
    try:
        family, kind, protocol, place = (await resolve(address))[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind(place)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
    except (OSError, ValueError, OverflowError) as error:
        raise CannotListen(f"{name} cannot listen on {address}: {reason_of(error)}") from error
    return sock


async def _accept(shell: NodeShell, name: str, listener: socket.socket, log: Log) -> None:
    """Take connections until the listener is closed; out of descriptors, wait for some to be given back."""
    while True:
        try:
            await trio.lowlevel.wait_readable(listener)
            for _ in range(ACCEPTS_MAX):
                sock, place = listener.accept()
                if sock.fileno() >= _descriptors_of_peers():
                    sock.close()
                    raise OSError(errno.EMFILE, "the descriptors that are left are kept for files")
                shell.accepted(sock, name, join(place))
        except trio.ClosedResourceError:
            return
        except BlockingIOError:
            continue
        except OSError as error:
            # The others are a peer that is gone before it was taken.
            if error.errno in _NO_ROOM:
                log.write(Level.ERROR, shell.role, "no connection accepted", {"reason": reason_of(error)})
                await trio.sleep(_NO_ROOM_WAIT_S)


def _descriptors_of_peers() -> int:
    """Which descriptors peers may have; the system gives the lowest that is free."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most - min(DESCRIPTORS_KEPT, most // 4)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
