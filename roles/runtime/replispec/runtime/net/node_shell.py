"""Carries out what one node decides: its connections, its timer, what it writes.

Events reach the node one at a time and in the order in which they happened; all that one event makes it
send on a connection leaves in one write.
"""

from __future__ import annotations

import math
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import trio

from replispec.runtime.net.addresses import join
from replispec.runtime.net.clock import Clock, now_s
from replispec.runtime.net.link import Link, Tap
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.persistence import Persistence
from replispec.runtime.net.sealed import NothingTakenError, SealedSocket
from replispec.runtime.net.sealing import ROLE, Sealing
from replispec.runtime.net.sockets import connect, own_host, prepare, reason_of
from replispec.runtime.net.turns import Turns
from replispec.runtime.net.watching import contents
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    FileRead,
    Halt,
    Level,
    Member,
    Note,
    Numbers,
    Pause,
    Persist,
    Received,
    Resume,
    Send,
    Started,
    Stopping,
    Ticked,
    Writable,
)

RECEIVE_BYTES_MAX: Final = 256 * 1024
"""The most that one Received carries."""
STOPPED: Final = "stopped"
HALTED: Final = "halted"
RECEIVE_BYTES_SMALL: Final = 16 * 1024
"""Room for a read while a connection carries little."""


class Halted(Exception):
    """A node asked for the end of the process."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may take: `stall_s` without a byte taken by the peer ends it, `close_s` is given
    to what was sent before a Close, `dial_s` to a Dial, `unsent_bytes` may wait in this process."""

    stall_s: float = 30.0
    close_s: float = 2.0
    dial_s: float = 10.0
    unsent_bytes: int = 512 * 1024 * 1024


class NodeShell:
    """One node of the process. `nursery` holds all its tasks: an error of the node ends them all."""

    def __init__(
        self,
        member: Member,
        nursery: trio.Nursery,
        clock: Clock,
        log: Log,
        tap: Tap | None,
        bounds: Bounds,
        sealing: Sealing | None = None,
    ) -> None:
        self.role: Final = member.role
        self._plain = member.plain_listeners
        self._watched = member.watched
        self._accepting = sealing if sealing is not None and sealing.takes_sealed else None
        self._dialling = sealing if sealing is not None and sealing.dials_sealed else None
        self._node = member.node
        self.view: Final = member.view
        self._start_ms = clock.now_ms()
        self._latencies = None if member.view is None else member.view.latencies
        buckets = () if member.view is None else member.view.write_buckets
        self._persistence = Persistence(member.stores, clock, self.deliver, buckets=buckets)
        self._taken = self._refused = 0
        self._nursery = nursery
        self._clock = clock
        self._log = log
        self._tap = tap
        self._bounds = bounds
        self._links: dict[int, Link] = {}
        self._last_accepted = 0
        self._events: deque[Event] = deque()
        self._busy = self._stopped = False
        self._touched: dict[int, Link] = {}
        # What takes long is done one at a time, one in a turn of the loop: however many peers bring much at
        # once, who brings little waits for one of them.
        self._turns = Turns()
        # Connections that get Writable at such a turn, so that a peer that takes all at once cannot keep the
        # others from being served.
        self._soon: list[int] = []
        self._soon_waits = trio.Event()
        self._timer = trio.CancelScope()
        self._armed_s = math.inf

    def start(self, addresses: Mapping[str, str]) -> None:
        """Begin: the node's first event, its timer, its writes."""
        self._own_host = own_host(addresses.values())
        self._nursery.start_soon(self._turns.run)
        self._nursery.start_soon(self._tell_soon)
        self._nursery.start_soon(self._keep_time)
        self._nursery.start_soon(self._persistence.run)
        for name in self._watched:
            self._nursery.start_soon(self._watch, name)
        self.deliver(Started(self._clock.now_ms(), addresses))
        if self.view is not None:
            self._log.write(Level.INFO, self.role, "started", {**self.view.who(), **self.view.began()})

    def numbers(self) -> Numbers:
        """What is counted here."""
        links, writes = self._links, self._persistence
        return Numbers(
            now_ms=self._clock.now_ms(),
            start_ms=self._start_ms,
            events=self._taken,
            accepted=sum(number > 0 for number in links),
            dialled=sum(number <= 0 for number in links),
            refused=self._refused,
            unsent_bytes=sum(link.out_bytes for link in links.values()),
            writes_waiting=writes.waiting,
            write_failures=writes.failures,
            write_seconds=writes.took,
            lines=self._log.lines,
            lines_left_out=self._log.left_out,
        )

    def ended(self, how: str, reason: str) -> None:
        """The line at the end."""
        if self.view is not None:
            level = Level.INFO if how == STOPPED else Level.ERROR
            self._log.write(level, self.role, how, {**self.view.who(), "reason": reason})

    def accepted(self, sock: socket.socket, listener: str, peer: str) -> None:
        """A peer opened a connection."""
        link = Link(self._last_accepted + 1, peer, self._tap)
        try:
            prepare(sock)
            link.open(sock)
        except OSError:
            # The peer is gone again: it was never here.
            sock.close()
            return
        self._last_accepted = link.number
        self._links[link.number] = link
        if self._accepting is None or listener in self._plain:
            self.deliver(Accepted(link.number, listener, peer, self._clock.now_ms()))
            self._nursery.start_soon(self._read, link)
        else:
            # It counts from now on; what is sent waits.
            link.draining = link.begins = True
            self.deliver(Accepted(link.number, listener, peer, self._clock.now_ms()))
            self._nursery.start_soon(self._begin, link, sock, self._accepting)

    async def stop(self) -> None:
        """Tell the node that the process ends, and let what it sent leave and what it wants written be."""
        self.deliver(Stopping(self._clock.now_ms()))
        self._stopped = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._persistence.finished)
            for link in tuple(self._links.values()):
                self._close(link, nursery)

    def abandon(self) -> None:
        """End what is still open, at once: nobody runs this node any more."""
        for link in tuple(self._links.values()):
            self._forget(link)
            link.dispose()

    def deliver(self, event: Event) -> None:
        """Give the node an event and carry out what it makes of it, and of what follows at once."""
        if self._stopped:
            return
        self._events.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._events:
                self._take(self._events.popleft())
        finally:
            self._busy = False
        self._arm()

    def _take(self, event: Event) -> None:
        self._taken += 1
        if (latencies := self._latencies) is not None:
            latencies.began_s = now_s()
        for effect in self._node.receive(event):
            self._perform(effect)
        self._push_touched()
        if latencies is not None and latencies.is_waiting:
            latencies.end(now_s())

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Send(connection, data, tell):
                link = self._links.get(connection)
                if link is not None and not link.closing and not link.gone:
                    assert link.is_open, "sent before it was connected"
                    link.queue(data, tell=tell)
                    self._touched[connection] = link
            case Close(connection):
                self._push_touched()
                link = self._links.get(connection)
                if link is not None:
                    self._close(link, self._nursery)
            case Note(level, what, values, always):
                who = {} if self.view is None else self.view.who()
                self._log.write(level, self.role, what, {**who, **values}, always=always)
            case Persist():
                self._persistence.ask(effect)
            case Dial(connection, address, plain):
                link = Link(connection, address, self._tap)
                self._links[connection] = link
                self._nursery.start_soon(self._dial, link, address, None if plain else self._dialling)
            case Pause(connection) | Resume(connection):
                link = self._links.get(connection)
                if link is not None:
                    link.pause() if isinstance(effect, Pause) else link.resume()
            case Halt(reason):
                self._push_touched()
                self.ended(HALTED, reason)
                raise Halted(reason)

    # Sending

    def _push_touched(self) -> None:
        if self._touched:
            touched, self._touched = self._touched, {}
            for link in touched.values():
                self._push(link)

    def _push(self, link: Link) -> None:
        """Send what can be sent now; what cannot is left to a task."""
        if link.gone or link.draining:
            return
        try:
            empty = link.push()
        except OSError as error:
            self._lost_in_turn(link, reason_of(error))
            return
        if not empty:
            if link.out_bytes > self._bounds.unsent_bytes:
                self._lost_in_turn(link, f"{link.out_bytes} bytes wait for the peer")
                return
            link.draining = True
            self._nursery.start_soon(self._drain, link)
        if link.became_writable():
            self._soon.append(link.number)
            self._soon_waits.set()

    async def _drain(self, link: Link) -> None:
        try:
            while link.out or link.has_said:
                with trio.move_on_after(self._bounds.stall_s) as patience:
                    await trio.lowlevel.wait_writable(link.sock)
                if patience.cancelled_caught:
                    self._lost_in_turn(link, f"the peer took nothing for {self._bounds.stall_s:g} s")
                    return
                link.push()
                if link.became_writable():
                    self.deliver(Writable(link.number, self._clock.now_ms()))
        except trio.ClosedResourceError:
            return
        except OSError as error:
            self._lost_in_turn(link, reason_of(error))
        finally:
            link.draining = False
            if link.emptied is not None:
                link.emptied.set()

    async def _tell_soon(self) -> None:
        while True:
            await self._soon_waits.wait()
            self._soon_waits = trio.Event()
            soon, self._soon = self._soon, []
            for number in soon:
                await self._turns.mine()
                link = self._links.get(number)
                if link is not None and not link.gone:
                    self.deliver(Writable(number, self._clock.now_ms()))

    # Receiving

    async def _read(self, link: Link) -> None:
        """Hand over what arrives until the connection ends; once it closes, what arrives is dropped.

        Who brings much, and who leaves (a client of a thousand groups, say), waits for a turn.
        """
        size = RECEIVE_BYTES_SMALL
        while not link.gone:
            if link.has_said:
                self._push(link)
            try:
                await trio.lowlevel.wait_readable(link.sock)
                if link.paused and not link.closing:
                    await link.resumed()
                    continue
                if size == RECEIVE_BYTES_MAX:
                    await self._turns.mine()
                    if link.number not in self._links or link.paused:
                        continue
                data = link.take(size)
            except BlockingIOError:
                continue
            except trio.ClosedResourceError:
                return
            except OSError as error:
                await self._turns.mine()
                self._failed(link, error)
                return
            if not data:
                if not link.closing:
                    await self._turns.mine()
                self._lost(link, "the peer closed the connection", by_peer=True)
            elif not link.closing:
                self.deliver(Received(link.number, data, self._clock.now_ms()))
                size = RECEIVE_BYTES_MAX if len(data) >= RECEIVE_BYTES_SMALL else RECEIVE_BYTES_SMALL

    # Opening and closing

    async def _begin(self, link: Link, sock: socket.socket, sealing: Sealing) -> None:
        """Let a connection that was accepted begin with TLS, if it does; then read it."""
        reason = None
        try:
            sealed = await sealing.accept(sock, link.peer, self._log, self._turns.mine)
            link.sock = sock if sealed is None else sealed
        except trio.ClosedResourceError:
            return
        except OSError as error:
            reason = reason_of(error)
        finally:
            link.draining = link.begins = False
            if link.emptied is not None:
                link.emptied.set()
        if reason is not None:
            self._refused += 1
            self._lost(link, reason)
        else:
            await self._read_sealed(link)

    async def _read_sealed(self, link: Link) -> None:
        """Send what waits, hand over what came with the end of the beginning, and go on reading."""
        self._push(link)
        try:
            data = b"" if link.gone else link.take_rest()
        except OSError as error:
            self._failed(link, error)
            return
        if data and not link.closing:
            self.deliver(Received(link.number, data, self._clock.now_ms()))
        await self._read(link)

    async def _dial(self, link: Link, address: str, sealing: Sealing | None) -> None:
        reason = f"no connection in {self._bounds.dial_s:g} s"
        sock: socket.socket | SealedSocket | None = None
        with link.scope, trio.move_on_after(self._bounds.dial_s):
            try:
                sock = plain = await connect(address, self._own_host)
                if sealing is not None:
                    sock = None
                    sock = await self._begin_dialled(plain, address, sealing)
            except (OSError, ValueError) as error:
                reason = reason_of(error)
        if link.gone:
            if sock is not None:
                sock.close()
        elif sock is None:
            self._lost(link, reason)
        else:
            try:
                local, peer = join(sock.getsockname()), join(sock.getpeername())
                link.open(sock)
            except OSError as error:
                sock.close()
                self._lost(link, reason_of(error))
                return
            self.deliver(Connected(link.number, local, self._clock.now_ms(), peer))
            self._nursery.start_soon(self._read if sealing is None else self._read_sealed, link)

    async def _begin_dialled(self, sock: socket.socket, address: str, sealing: Sealing) -> SealedSocket:
        try:
            return await sealing.dialled(sock, address, self._log, self._turns.mine)
        except BaseException:
            sock.close()
            raise

    def _close(self, link: Link, nursery: trio.Nursery) -> None:
        if link.closing:
            return
        link.closing = True
        if not link.is_open or (link.begins and not link.out):
            self._forget(link)
            link.dispose()
            return
        link.resume()
        nursery.start_soon(self._finish, link)

    async def _finish(self, link: Link) -> None:
        """Let what was sent leave, then wait for the peer's end: closing over bytes that were not read
        would reset the connection and take the last answer along."""
        with trio.move_on_after(self._bounds.close_s):
            if link.draining:
                link.emptied = trio.Event()
                await link.emptied.wait()
            if not link.gone:
                try:
                    link.end_sending()
                except OSError as error:
                    self._lost(link, reason_of(error))
            await link.ended.wait()
        self._forget(link)
        link.dispose(broken=bool(link.out))

    def _failed(self, link: Link, error: OSError) -> None:
        """Reading has ended a connection."""
        if isinstance(error, NothingTakenError):
            self._refused += 1
            values = {"peer": link.peer, "reason": reason_of(error)}
            self._log.write(Level.WARNING, ROLE, "peer refused", values)
        self._lost(link, reason_of(error))

    def _lost(self, link: Link, reason: str, *, by_peer: bool = False) -> None:
        """A connection ended without the node's wish."""
        if not link.gone:
            link.dispose(by_peer=by_peer, broken=not by_peer)
            self._tell_lost(link, reason)

    def _lost_in_turn(self, link: Link, reason: str) -> None:
        """The same, found while something was sent: the node is told in a turn. What one event has sent to
        many may find that many are gone."""
        if not link.gone:
            link.dispose(broken=True)
            self._nursery.start_soon(self._tell_lost_in_turn, link, reason)

    async def _tell_lost_in_turn(self, link: Link, reason: str) -> None:
        await self._turns.mine()
        self._tell_lost(link, reason)

    def _tell_lost(self, link: Link, reason: str) -> None:
        self._forget(link)
        if not link.closing:
            self.deliver(Closed(link.number, reason, self._clock.now_ms()))

    def _forget(self, link: Link) -> None:
        self._links.pop(link.number, None)

    # Files of others

    async def _watch(self, name: str) -> None:
        """Tell the node what a file holds, and again when it has changed."""
        async for data in contents(name):
            self.deliver(FileRead(name, data, self._clock.now_ms()))

    # Time

    def _arm(self) -> None:
        """See that the timer runs when the node wants it."""
        due_ms = self._node.deadline_ms()
        if due_ms is not None:
            due_s = self._clock.deadline_s(due_ms)
            if due_s < self._armed_s:
                self._armed_s = due_s
                self._timer.deadline = due_s

    async def _keep_time(self) -> None:
        while True:
            self._timer = trio.CancelScope(deadline=self._armed_s)
            with self._timer:
                await trio.sleep_forever()
            self._armed_s = math.inf
            due_ms, now_ms = self._node.deadline_ms(), self._clock.now_ms()
            if due_ms is not None and now_ms >= due_ms:
                self.deliver(Ticked(now_ms))
            self._arm()
