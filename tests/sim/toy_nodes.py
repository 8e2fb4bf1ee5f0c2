"""Small nodes to try the simulated world with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.runtime.sim import World
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Effect, Event, Member


def nothing(_: Event) -> Sequence[Effect]:
    """React to nothing."""
    return ()


@dataclass
class Toy:
    """Keeps what it hears; `react` says what it does about each event."""

    react: Callable[[Event], Sequence[Effect]] = nothing
    listeners: Mapping[str, str] = field(default_factory=dict)
    deadlines_ms: list[int] = field(default_factory=list)
    received: list[Event] = field(default_factory=list)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        self.received.append(event)
        if self.deadlines_ms and event.now_ms >= self.deadlines_ms[0]:
            del self.deadlines_ms[0]
        return self.react(event)

    def deadline_ms(self) -> int | None:
        """The first of the deadlines."""
        return self.deadlines_ms[0] if self.deadlines_ms else None

    def kinds(self) -> list[str]:
        """What was heard, by type."""
        return [type(event).__name__ for event in self.received]


def put(world: World, name: str, host: str, *toys: Toy, folder: str = "") -> None:
    """Add a process of toys to a world and start it."""

    def make(storage: Storage) -> list[Member]:
        return [Member("toy", toy, Stores(storage.files(folder))) for toy in toys]

    world.add(name, host, make)
    world.start(name)
