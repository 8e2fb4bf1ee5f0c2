"""Processes, their clocks, disks and connections on one heap of events, all of it from one seed.

    world = World(seed)
    world.add("controller", "127.0.0.1", make_controller)
    world.start("controller")
    world.run_until(seconds=30)
    world.digest()          # of the trace: the same seed gives the same one, on every machine

A node is the same object as on a real machine; see `replispec.runtime.world`. What is not promised there
is not kept here: time jumps between two lives of a process, ticks come late, flushes take their time.
"""

from __future__ import annotations

import hashlib
import heapq
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from replispec.runtime.sim.chance import Chance
from replispec.runtime.sim.disk import Crashed, Disk
from replispec.runtime.sim.files import SimulatedFiles
from replispec.runtime.sim.network import End, Host, Network, Weather
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import (
    Close,
    Closed,
    Dial,
    Effect,
    Event,
    Flush,
    Flushed,
    FlushFailed,
    Halt,
    Level,
    Node,
    Note,
    Received,
    Send,
    Started,
    Stopping,
    Ticked,
)

START_MS: Final = 1_700_000_000_000
IDLE_TICKS_MAX: Final = 1_000
"""How often a node may ask to be told the time again without any time passing: a real host would burn a
processor."""


class Stuck(Exception):
    """A node asks for the same moment again and again."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How processes and disks behave. Times in microseconds."""

    late_tick_us: int = 2_000
    flush_us: int = 1_500
    slow_flush_per_mille: int = 5
    slow_flush_us: int = 400_000
    wall_jump_ms: int = 3_600_000
    drift_per_mille: int = 1


@dataclass(slots=True, eq=False)
class _Life:
    """One node of one life of a process: its connections and its own clock."""

    process: Process
    node: Node
    started_us: int
    wall_ms: int
    rate: int
    ends: dict[int, End] = field(default_factory=dict)
    last_accepted: int = 0
    wake_us: int | None = None
    idle_ticks: int = 0
    flushing: bool = False
    to_flush: list[Flush] = field(default_factory=list)

    def now_ms(self, now_us: int) -> int:
        """The node's clock: the wall clock at its start, carried on by a clock of its own rate."""
        return self.wall_ms + (now_us - self.started_us) * self.rate // 1_000_000

    def at_us(self, when_ms: int) -> int:
        """When the node's clock shows a time."""
        return self.started_us - (-(when_ms - self.wall_ms) * 1_000_000 // self.rate)


@dataclass(slots=True, eq=False)
class Process:
    """A program that is started, killed and started again on its disk. `lives` counts the starts;
    `failure` is why the last life ended by itself."""

    name: str
    host: str
    make: Callable[[Disk], Sequence[Node]]
    disk: Disk
    lives: list[_Life] = field(default_factory=list)
    starts: int = 0
    is_paused: bool = False
    backlog: list[Callable[[], None]] = field(default_factory=list)
    failure: str | None = None
    last_port: int = 40_000

    @property
    def is_alive(self) -> bool:
        """Whether it runs (or is paused)."""
        return bool(self.lives)

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes of the life it lives, none when it is dead."""
        return tuple(life.node for life in self.lives)


class _Owner:
    """What the network knows of a node."""

    def __init__(self, world: World, life: _Life) -> None:
        self._world = world
        self.life = life

    @property
    def process(self) -> str:
        """The name of its process."""
        return self.life.process.name

    def adopt(self, end: End) -> None:
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


class World:
    """Everything there is."""

    def __init__(self, seed: int, *, weather: Weather | None = None, pace: Pace | None = None) -> None:
        self.chance = Chance(seed)
        self.pace = pace or Pace()
        self.now_us = 0
        self.processes: dict[str, Process] = {}
        self.lines: list[str] = []
        self.keeps_lines = False
        self.notes: Callable[[str, Note], None] | None = None
        self._weathers = self.chance.fork()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        self._digest = hashlib.sha256()
        self.network = Network(self, self.chance.fork(), weather or Weather(), self)

    # What a plan does to the world.

    def add(self, name: str, host: str, make: Callable[[Disk], Sequence[Node]]) -> Process:
        """A process at a host address of its own; `make` is called at each start and may raise
        StorageFailed. It does not run yet."""
        process = Process(name, host, make, Disk(self.chance.fork()))
        self.processes[name] = process
        return process

    def start(self, name: str) -> None:
        """Start a process that does not run."""
        process = self.processes[name]
        assert not process.is_alive, f"{name} runs already"
        process.failure = None
        process.starts += 1
        self.network.light(name)
        self.trace(name, "starts")
        try:
            nodes = process.make(process.disk)
        except (StorageFailed, Crashed) as error:
            self._fail(process, f"start: {error}")
            return
        jump = self.pace.wall_jump_ms
        wall_ms = START_MS + self.now_us // 1_000
        if process.starts > 1:
            wall_ms += self.chance.between(-jump, jump) * self.chance.below(2)
        drift = self.pace.drift_per_mille
        rate = 1_000 + self.chance.between(-drift, drift)
        process.lives = [_Life(process, node, self.now_us, wall_ms, rate) for node in nodes]
        for life in tuple(process.lives):
            self.deliver(life, Started)

    def kill(self, name: str, *, power: bool = False) -> None:
        """End a process at once: by kill -9, or with its machine, whose disk then loses what was not
        flushed and whose peers hear nothing."""
        process = self.processes[name]
        if not process.is_alive:
            return
        self.trace(name, "loses power" if power else "is killed")
        self._end(process, power=power)

    def stop(self, name: str) -> None:
        """Ask a process to end, as SIGTERM does."""
        process = self.processes[name]
        for life in tuple(process.lives):
            self.deliver(life, Stopping)
        for life in process.lives:
            for end in tuple(life.ends.values()):
                self.network.close(end)
        self._end(process, power=False)

    def pause(self, name: str) -> None:
        """The process does nothing any more, its connections stay open."""
        self.trace(name, "is paused")
        self.processes[name].is_paused = True

    def go_on(self, name: str) -> None:
        """The process goes on after a pause, with all that has happened meanwhile."""
        process = self.processes[name]
        if not process.is_paused:
            return
        self.trace(name, "goes on")
        process.is_paused = False
        backlog, process.backlog = process.backlog, []
        for action in backlog:
            if process.is_paused:
                process.backlog.append(action)
            else:
                action()

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        """Do something later; what is planned for the same moment happens in the order of planning."""
        self._planned += 1
        heapq.heappush(self._heap, (self.now_us + max(delay_us, 0), self._planned, action))

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        end_us = self.now_us + duration_ms * 1_000
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            self.now_us, _, action = heapq.heappop(heap)
            action()
        self.now_us = end_us

    def run_until(self, is_so: Callable[[], bool], *, at_most_ms: int, step_ms: int = 50) -> bool:
        """Let time pass until something is so, looking each step; False when it did not become so."""
        for _ in range(0, at_most_ms, step_ms):
            if is_so():
                return True
            self.run_for(step_ms)
        return is_so()

    # What happened.

    def trace(self, who: str, what: str) -> None:
        """Add a line to the trace."""
        line = f"{self.now_us} {who} {what}\n"
        self._digest.update(line.encode())
        if self.keeps_lines:
            self.lines.append(line)

    def digest(self) -> str:
        """The sha256 of the trace so far, in hexadecimal digits."""
        return self._digest.hexdigest()

    # What the network asks.

    def process_at(self, address: str) -> str | None:
        """The process of a host address."""
        host = address.rpartition(":")[0]
        return next((one.name for one in self.processes.values() if one.host == host), None)

    def accept(self, address: str) -> tuple[Host, str, int] | None:
        """Who listens at an ADDRESS:PORT."""
        name = self.process_at(address)
        for life in self.processes[name].lives if name is not None else ():
            for listener, bound in life.node.listeners.items():
                if bound == address:
                    life.last_accepted += 1
                    return _Owner(self, life), listener, life.last_accepted
        return None

    # What a node's event does.

    def deliver(self, life: _Life, make: Callable[[int], Event]) -> None:
        """Hand an event to a node, unless its life is over, and carry out what it says."""
        process = life.process
        if life not in process.lives:
            return
        now_ms = life.now_ms(self.now_us)
        event = make(now_ms)
        self._trace_event(process.name, event)
        if isinstance(event, Closed):
            life.ends.pop(event.connection, None)
        try:
            effects = life.node.receive(event)
        except Crashed as crash:
            self._fail(process, str(crash))
            return
        for effect in effects:
            if life not in process.lives:
                return
            self._carry_out(life, effect)
        self._plan_tick(life, now_ms)

    def _carry_out(self, life: _Life, effect: Effect) -> None:
        name = life.process.name
        match effect:
            case Send(connection, data, tell):
                end = life.ends.get(connection)
                if end is not None:
                    self.trace(name, f"send {connection} {len(data)} {zlib.crc32(data)}")
                    self.network.send(end, data, tell)
            case Dial(connection, address):
                self.trace(name, f"dial {connection} {address}")
                life.process.last_port += 1
                local = f"{life.process.host}:{life.process.last_port}"
                self.network.dial(_Owner(self, life), connection, local, address)
            case Close(connection):
                self.trace(name, f"close {connection}")
                end = life.ends.pop(connection, None)
                if end is not None:
                    self.network.close(end)
            case Flush():
                life.to_flush.append(effect)
                self._flush_next(life)
            case Note(level, what, values):
                if level >= Level.INFO:
                    self.trace(name, f"{level.name.lower()}: {what} {dict(values)}")
                if self.notes is not None:
                    self.notes(name, effect)
            case Halt(reason):
                self._fail(life.process, reason)

    def _plan_tick(self, life: _Life, now_ms: int) -> None:
        deadline_ms = life.node.deadline_ms() if life in life.process.lives else None
        if deadline_ms is None:
            return
        life.idle_ticks = life.idle_ticks + 1 if deadline_ms <= now_ms else 0
        if life.idle_ticks > IDLE_TICKS_MAX:
            raise Stuck(f"{life.process.name} wants to be told of {deadline_ms} again and again")
        late_us = self.chance.below(self.pace.late_tick_us)
        wake_us = max(life.at_us(deadline_ms), self.now_us) + late_us
        if life.wake_us is None or wake_us < life.wake_us:
            life.wake_us = wake_us
            self.after(wake_us - self.now_us, partial(self._wake, life, wake_us))

    def _wake(self, life: _Life, wake_us: int) -> None:
        if life.wake_us == wake_us:
            life.wake_us = None
            _Owner(self, life).tell(Ticked)

    def _flush_next(self, life: _Life) -> None:
        """One flush of a node is under way at a time. What is written while it is may or may not be on
        the disk afterwards."""
        if life.flushing or not life.to_flush:
            return
        life.flushing = True
        flush = life.to_flush.pop(0)
        slow = self.chance.happens(self.pace.slow_flush_per_mille)
        takes_us = self.chance.below(self.pace.slow_flush_us if slow else self.pace.flush_us)
        if self.chance.happens(500):
            outcome = self._flush(life, flush)
            self.after(takes_us, partial(self._flushed, life, flush, outcome))
        else:
            self.after(takes_us, lambda: self._flushed(life, flush, self._flush(life, flush)))

    def _flush(self, life: _Life, flush: Flush) -> str | None:
        """Why the disk refused; None: it did not."""
        process = life.process
        if life not in process.lives:
            return None
        try:
            SimulatedFiles(process.disk).flush(flush.names)
        except StorageFailed as error:
            return str(error)
        except Crashed as crash:
            self._fail(process, str(crash))
        return None

    def _flushed(self, life: _Life, flush: Flush, reason: str | None) -> None:
        life.flushing = False
        if reason is None:
            _Owner(self, life).tell(lambda now_ms: Flushed(flush.token, now_ms))
        else:
            _Owner(self, life).tell(lambda now_ms: FlushFailed(flush.token, reason, now_ms))
        self._flush_next(life)

    def _fail(self, process: Process, reason: str) -> None:
        """A process ends by itself, or in the middle of a change of its disk."""
        self.trace(process.name, f"ends: {reason}")
        self._end(process, power=self.chance.happens(300))
        process.failure = reason

    def _end(self, process: Process, *, power: bool) -> None:
        process.lives = []
        process.backlog.clear()
        process.is_paused = False
        self.network.kill(process.name, silently=power)
        if power:
            self.network.darken(process.name)
        process.disk.crash(power=power)

    def _trace_event(self, name: str, event: Event) -> None:
        match event:
            case Received(connection, data, _):
                what = f"< received {connection} {len(data)} {zlib.crc32(data)}"
            case Started() | Ticked() | Stopping():
                what = f"< {type(event).__name__}"
            case _:
                what = f"< {event}"
        self.trace(name, what)
