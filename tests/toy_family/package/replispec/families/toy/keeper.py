"""The keeper as a node: leases asked for in, answers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from replispec.families.toy import runtime as rules
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.primitives.machines import step
from replispec.runtime.world import Accepted, Closed, Effect, Event, Outbox, Received, Ticked
from replispec.wire.toy.lease import LeaseAsked, LeaseRefused
from replispec.wire.toy.machines import lease_keeper as machine
from replispec.wire.toy.machines import lease_keeper_wire as wire
from replispec.wire.toy.options import KeeperOptions
from replispec.wire.toy.streams import ASKER


class KeeperNode:
    """Grants one lease, on the machine lease_keeper."""

    def __init__(self, address: str, options: KeeperOptions) -> None:
        self._options = options
        self.listeners: Mapping[str, str] = MappingProxyType({"lease": address})
        self._outbox = Outbox()
        self._buffers: dict[int, FrameBuffer] = {}
        self._state, self._variables = machine.MACHINE.initial, machine.MACHINE.variables
        self._lapses_ms: int | None = None

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects."""
        match event:
            case Accepted():
                self._buffers[event.connection] = FrameBuffer(ASKER)
            case Closed():
                self._buffers.pop(event.connection, None)
            case Received() if event.connection in self._buffers:
                self._read(event)
            case Ticked() if self._lapses_ms is not None and event.now_ms >= self._lapses_ms:
                self._lapses_ms = None
                self._take(machine.Lapsed())
            case _:
                pass
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When the lease lapses."""
        return self._lapses_ms

    def _read(self, event: Received) -> None:
        try:
            for frame in self._buffers[event.connection].receive(event.data):
                self._answer(event, LeaseAsked.decode(frame))
        except RemoteProtocolError:
            del self._buffers[event.connection]
            self._outbox.close(event.connection)

    def _answer(self, event: Received, asked: LeaseAsked) -> None:
        effects = self._take(machine.Asked(asked))
        known = self._variables
        if effects == ("grant",):
            self._lapses_ms = event.now_ms + self._options.lease_time_ms
            granted = wire.granted(known)
            self._outbox.send(event.connection, granted.encode())
            self._take(machine.Granted(granted))
            return
        refused = LeaseRefused(known.holder or 0)
        self._outbox.send(event.connection, refused.encode())
        self._take(machine.Refused(refused))

    def _take(self, event: machine.Event) -> tuple[str, ...]:
        taken = step(machine.MACHINE, self._state, self._variables, event, rules)
        self._state, self._variables = taken.state, taken.variables
        return taken.effects
