"""Stands between an administrator's command and the servers of a cluster, and strikes at one of its requests.

Servers listen at one address and the gate at another one, at the same ports. Who asks the name server through
the gate is told the gate's address of each broker, and so comes through it with everything; nobody else does.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from lab.ports import LOOPBACK
from lab.rocketmq.crash_rows import Moment, Party, Row, Step, Steps
from replispec.runtime.rocketmq.framing import FrameBuffer, decode_command
from replispec.wire.rocketmq import streams

OUTSIDE = "127.0.0.2"
CHUNK_BYTES = 65_536
DIAL_S = 3.0


@dataclass(slots=True)
class _Pair:
    """A connection of the administrator, and the one to a server; steps by what their requests are called."""

    to: Party
    outer: socket.socket
    inner: socket.socket
    asked: dict[int, Step] = field(default_factory=dict)

    def end(self) -> None:
        """Both."""
        for each in (self.outer, self.inner):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Gate:
    """Passes requests and answers on, one at a time. `kill` is called once, where `row` says. Leaving the
    block ends all connections."""

    def __init__(self, parties: Mapping[int, Party], row: Row | None, kill: Callable[[], None]) -> None:
        self.steps = Steps()
        self.struck = threading.Event()
        self._row = row
        self._kill = kill
        self._one_at_a_time = threading.Lock()
        self._open = ExitStack()
        self._is_over = False
        for port, party in parties.items():
            listener = self._open.enter_context(socket.create_server((OUTSIDE, port)))
            # A thread that waits in `accept` is not woken by `close`.
            self._open.callback(_shut, listener)
            threading.Thread(target=self._accept, args=(listener, port, party), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._one_at_a_time:
            self._is_over = True
        self._open.close()

    def _accept(self, listener: socket.socket, port: int, party: Party) -> None:
        with suppress(OSError):
            while True:
                outer, _ = listener.accept()
                # Nobody listens inside: who came is told so by the end of the connection.
                try:
                    inner = socket.create_connection((LOOPBACK, port), timeout=DIAL_S)
                except OSError:
                    outer.close()
                    continue
                inner.settimeout(None)
                for each in (outer, inner):
                    self._open.enter_context(each)
                pair = _Pair(party, outer, inner)
                self._open.callback(pair.end)
                ways = (outer, inner, self._asked), (inner, outer, self._answered)
                for source, sink, take in ways:
                    threading.Thread(
                        target=self._pass_on, args=(pair, source, sink, take), daemon=True
                    ).start()

    def _pass_on(
        self,
        pair: _Pair,
        source: socket.socket,
        sink: socket.socket,
        take: Callable[[_Pair, bytes, socket.socket], bool],
    ) -> None:
        """Until one of both ends: then both do."""
        frames = FrameBuffer(streams.REMOTING)
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                for frame in frames.receive(data):
                    with self._one_at_a_time:
                        if self._is_over or not take(pair, bytes(frame), sink):
                            pair.end()
                            return
        pair.end()

    def _asked(self, pair: _Pair, frame: bytes, sink: socket.socket) -> bool:
        """Whether the connection goes on."""
        header = decode_command(frame).header
        step = self.steps.next(header.code, pair.to)
        pair.asked[header.opaque] = step
        if self._strikes(step, Moment.BEFORE) and self._ends(step):
            return False
        sink.sendall(frame)
        return True

    def _answered(self, pair: _Pair, frame: bytes, sink: socket.socket) -> bool:
        """Whether the connection goes on."""
        step = pair.asked.pop(decode_command(frame).header.opaque)
        if self._strikes(step, Moment.WRITTEN) and self._ends(step):
            return False
        if pair.to is Party.NAME_SERVER:
            frame = frame.replace(LOOPBACK.encode(), OUTSIDE.encode())
        sink.sendall(frame)
        return not (self._strikes(step, Moment.ANSWERED) and self._ends(step))

    def _strikes(self, step: Step, moment: Moment) -> bool:
        row = self._row
        if row is None or self.struck.is_set() or (row.step, row.moment) != (step, moment):
            return False
        self._kill()
        self.struck.set()
        return True

    def _ends(self, step: Step) -> bool:
        """Whether who died is at an end of the connection."""
        assert self._row is not None
        return not self._row.dead.isdisjoint({Party.ADMINISTRATOR, step.to})


def _shut(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
