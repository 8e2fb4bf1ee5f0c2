"""Processes of the simulated world: what they are started from, and what one life of theirs holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replispec.runtime.sim.disk import Disk
from replispec.runtime.sim.network import SimulatedEnd
from replispec.runtime.storage import Storage, Stores
from replispec.runtime.world import Event, Member, Node, Persist


class Deliverer(Protocol):
    """Whoever hands nodes their events."""

    def deliver(self, life: Life, make: Callable[[int], Event]) -> None:
        """Hand a node an event, made with the time on its clock."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How processes and disks behave. Times in microseconds."""

    late_tick_us: int = 2_000
    write_us: int = 1_500
    slow_write_per_mille: int = 5
    slow_write_us: int = 400_000
    wall_jump_ms: int = 3_600_000
    drift_per_mille: int = 1


@dataclass(slots=True, eq=False)
class Life:
    """One node of one life of a process: its connections and its own clock."""

    process: SimulatedProcess
    node: Node
    stores: Stores
    addresses: Mapping[str, str]
    started_us: int
    wall_ms: int
    rate: int
    ends: dict[int, SimulatedEnd] = field(default_factory=dict)
    last_accepted: int = 0
    wake_us: int | None = None
    idle_ticks: int = 0
    to_persist: deque[Persist] = field(default_factory=deque)
    under_way: Persist | None = None
    is_written: bool = False

    def now_ms(self, now_us: int) -> int:
        """The node's clock: the wall clock at its start, carried on by a clock of its own rate."""
        return self.wall_ms + (now_us - self.started_us) * self.rate // 1_000_000

    def at_us(self, when_ms: int) -> int:
        """When the node's clock shows a time."""
        return self.started_us - (-(when_ms - self.wall_ms) * 1_000_000 // self.rate)


@dataclass(slots=True, eq=False)
class SimulatedProcess:
    """A program that is started, killed and started again on its disk. `lives` counts the starts;
    `failure` is why the last life ended by itself. `loses_power` says whether a life that ends inside a
    change of its disk takes the machine with it; None: at random."""

    name: str
    host: str
    make: Callable[[Storage], Sequence[Member]]
    disk: Disk
    lives: list[Life] = field(default_factory=list)
    starts: int = 0
    is_paused: bool = False
    backlog: list[Callable[[], None]] = field(default_factory=list)
    failure: str | None = None
    loses_power: bool | None = None
    last_port: int = 40_000

    @property
    def is_alive(self) -> bool:
        """Whether it runs (or is paused)."""
        return bool(self.lives)

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes of the life it lives, none when it is dead."""
        return tuple(life.node for life in self.lives)


class Owner:
    """What the network knows of a node."""

    def __init__(self, world: Deliverer, life: Life) -> None:
        self._world = world
        self.life = life

    @property
    def process(self) -> str:
        """The name of its process."""
        return self.life.process.name

    def adopt(self, end: SimulatedEnd) -> None:
        """Take one side of a connection."""
        self.life.ends[end.number] = end

    def tell(self, make: Callable[[int], Event]) -> None:
        """Hand the node an event."""
        self.when_running(lambda: self._world.deliver(self.life, make))

    def when_running(self, action: Callable[[], None]) -> None:
        """Do something when the process is not paused."""
        if self.life.process.is_paused:
            self.life.process.backlog.append(action)
        else:
            action()
