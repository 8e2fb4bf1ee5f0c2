"""Processes, their clocks, disks and connections on one heap of events, all of it from one seed.

    world = World(seed)
    world.add("controller", "127.0.0.1", make_controller)
    world.start("controller")
    world.run_until(seconds=30)
    world.digest()          # of the trace: the same seed gives the same one, on every machine

A node is the same object as on a real machine; see `replispec.runtime.world`. What is not promised there
is not kept here: time jumps between two lives of a process, ticks come late, writes take their time.
"""

from __future__ import annotations

import hashlib
import heapq
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from replispec.runtime.primitives.rng import Rng
from replispec.runtime.sim.disk import Crashed, Disk
from replispec.runtime.sim.journal import SimulatedStorage
from replispec.runtime.sim.network import Host, Network, NetworkConditions
from replispec.runtime.sim.process import Life, Owner, Pace, SimulatedProcess
from replispec.runtime.storage import Storage, StorageFailed, StorageFull
from replispec.runtime.world import (
    Close,
    Closed,
    Dial,
    Effect,
    Event,
    Halt,
    Level,
    Member,
    Note,
    Pause,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Resume,
    Send,
    Started,
    Stopping,
    Ticked,
)

START_MS: Final = 1_700_000_000_000
IDLE_TICKS_MAX: Final = 1_000
"""How often a node may ask for another tick without any time passing: a real host would burn a
processor."""


class Stuck(Exception):
    """A node asks for the same moment again and again."""


class World:
    """Everything there is."""

    def __init__(
        self, seed: int, *, conditions: NetworkConditions | None = None, pace: Pace | None = None
    ) -> None:
        self.rng = Rng(seed)
        self.pace = pace or Pace()
        self.now_us = 0
        self.processes: dict[str, SimulatedProcess] = {}
        self.lines: list[str] = []
        self.keeps_lines = False
        self.notes: Callable[[str, Note], None] | None = None
        self._weathers = self.rng.fork()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        self._digest = hashlib.sha256()
        self.network = Network(self, self.rng.fork(), conditions or NetworkConditions(), self)

    # What a plan does to the world.

    def add(self, name: str, host: str, make: Callable[[Storage], Sequence[Member]]) -> SimulatedProcess:
        """A process at a host address of its own; `make` is called at each start and may raise
        StorageFailed. It does not run yet."""
        process = SimulatedProcess(name, host, make, Disk(self.rng.fork()))
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
            members = process.make(SimulatedStorage(process.disk))
        except (StorageFailed, Crashed) as error:
            self._fail(process, f"start: {error}")
            return
        jump = self.pace.wall_jump_ms
        wall_ms = START_MS + self.now_us // 1_000
        if process.starts > 1:
            wall_ms += self.rng.between(-jump, jump) * self.rng.below(2)
        drift = self.pace.drift_per_mille
        rate = 1_000 + self.rng.between(-drift, drift)
        for member in members:
            bound = {name: self._bind(process, asked) for name, asked in member.node.listeners.items()}
            life = Life(process, member.node, member.stores, bound, self.now_us, wall_ms, rate)
            process.lives.append(life)
        for life in tuple(process.lives):
            self.deliver(life, partial(Started, addresses=life.addresses))

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
            self._write_all(life)
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
            for listener, bound in life.addresses.items():
                if bound == address:
                    life.last_accepted += 1
                    return Owner(self, life), listener, life.last_accepted
        return None

    # What a node's event does.

    def deliver(self, life: Life, make: Callable[[int], Event]) -> None:
        """Hand an event to a node, unless its life is over, and carry out what it says."""
        process = life.process
        if life not in process.lives:
            return
        now_ms = life.now_ms(self.now_us)
        event = make(now_ms)
        connection = getattr(event, "connection", None)
        if connection is not None and connection not in life.ends:
            # The node has closed it meanwhile, and hears nothing more of it.
            return
        self._trace_event(process.name, event)
        if isinstance(event, Closed):
            del life.ends[event.connection]
        process.disk.forbids_changes = True
        try:
            effects = life.node.receive(event)
        except Crashed as crash:
            self._fail(process, str(crash))
            return
        finally:
            process.disk.forbids_changes = False
        for effect in effects:
            if life not in process.lives:
                return
            self._carry_out(life, effect)
        self._plan_tick(life, now_ms)

    def _carry_out(self, life: Life, effect: Effect) -> None:
        name = life.process.name
        match effect:
            case Dial() | Send() | Close() | Pause() | Resume():
                self._on_connection(life, effect)
            case Persist():
                life.to_persist.append(effect)
                self._persist_next(life)
            case Note(level, what, values):
                if level >= Level.INFO:
                    self.trace(name, f"{level.name.lower()}: {what} {dict(values)}")
                if self.notes is not None:
                    self.notes(name, effect)
            case Halt(reason):
                self._fail(life.process, reason)

    def _on_connection(self, life: Life, effect: Dial | Send | Close | Pause | Resume) -> None:
        name = life.process.name
        end = life.ends.get(effect.connection)
        match effect:
            case Dial(connection, address):
                self.trace(name, f"dial {connection} {address}")
                life.process.last_port += 1
                local = f"{life.process.host}:{life.process.last_port}"
                self.network.dial(Owner(self, life), connection, local, address)
            case Send(connection, data, tell) if end is not None:
                self.trace(name, f"send {connection} {len(data)} {zlib.crc32(data)}")
                self.network.send(end, data, tell)
            case Close(connection) if end is not None:
                self.trace(name, f"close {connection}")
                del life.ends[connection]
                self.network.close(end)
            case Pause() if end is not None:
                self.network.hold(end)
            case Resume() if end is not None:
                self.network.release(end)
            case _:
                # The connection went while the node had not heard of it yet.
                pass

    def _plan_tick(self, life: Life, now_ms: int) -> None:
        deadline_ms = life.node.deadline_ms() if life in life.process.lives else None
        if deadline_ms is None:
            return
        life.idle_ticks = life.idle_ticks + 1 if deadline_ms <= now_ms else 0
        if life.idle_ticks > IDLE_TICKS_MAX:
            raise Stuck(f"{life.process.name} wants a tick at {deadline_ms} again and again")
        late_us = self.rng.below(self.pace.late_tick_us)
        wake_us = max(life.at_us(deadline_ms), self.now_us) + late_us
        if life.wake_us is None or wake_us < life.wake_us:
            life.wake_us = wake_us
            self.after(wake_us - self.now_us, partial(self._wake, life, wake_us))

    def _wake(self, life: Life, wake_us: int) -> None:
        if life.wake_us == wake_us:
            life.wake_us = None
            Owner(self, life).tell(Ticked)

    def _persist_next(self, life: Life) -> None:
        """One Persist of a node is under way at a time. What is put into a region while one is may or may
        not be on the disk afterwards."""
        if life.under_way is not None or not life.to_persist:
            return
        life.under_way = persist = life.to_persist.popleft()
        slow = self.rng.happens(self.pace.slow_write_per_mille)
        takes_us = self.rng.below(self.pace.slow_write_us if slow else self.pace.write_us)
        if self.rng.happens(500):
            outcome = self._carry_out_on_disk(life, persist)
            life.is_written = True
            self.after(takes_us, partial(self._persisted, life, persist, outcome))
        else:
            life.is_written = False
            self.after(takes_us, partial(self._write_and_tell, life, persist))

    def _write_and_tell(self, life: Life, persist: Persist) -> None:
        if life.under_way is persist:
            self._persisted(life, persist, self._carry_out_on_disk(life, persist))

    def _carry_out_on_disk(self, life: Life, persist: Persist) -> StorageFailed | None:
        """Why the disk refused; None: it did not."""
        process = life.process
        if life not in process.lives:
            return None
        try:
            life.stores.carry_out(persist.operations)
        except StorageFailed as error:
            return error
        except Crashed as crash:
            self._fail(process, str(crash))
        return None

    def _persisted(self, life: Life, persist: Persist, error: StorageFailed | None) -> None:
        if life.under_way is not persist:
            return
        life.under_way = None
        token = persist.token
        if error is None:
            Owner(self, life).tell(lambda now_ms: Persisted(token, now_ms))
        else:
            is_full = isinstance(error, StorageFull)
            Owner(self, life).tell(lambda now_ms: PersistFailed(token, str(error), is_full, now_ms))
        self._persist_next(life)

    def _write_all(self, life: Life) -> None:
        """What a node that stops still wants written is written before its process ends."""
        waiting = [*life.to_persist]
        if life.under_way is not None and not life.is_written:
            waiting.insert(0, life.under_way)
        life.to_persist.clear()
        life.under_way = None
        for persist in waiting:
            self._carry_out_on_disk(life, persist)

    def _fail(self, process: SimulatedProcess, reason: str) -> None:
        """A process ends by itself, or in the middle of a change of its disk."""
        self.trace(process.name, f"ends: {reason}")
        cuts_power = self.rng.happens(300)
        self._end(process, power=cuts_power if process.loses_power is None else process.loses_power)
        process.failure = reason

    def _end(self, process: SimulatedProcess, *, power: bool) -> None:
        process.lives = []
        process.backlog.clear()
        process.is_paused = False
        self.network.kill(process.name, silently=power)
        if power:
            self.network.darken(process.name)
        process.disk.crash(power=power)

    def _bind(self, process: SimulatedProcess, asked: str) -> str:
        """Where a listener that asks for ADDRESS:PORT really listens."""
        host, _, port = asked.rpartition(":")
        if int(port):
            return asked
        process.last_port += 1
        return f"{host}:{process.last_port}"

    def _trace_event(self, name: str, event: Event) -> None:
        match event:
            case Received(connection, data, _):
                what = f"< received {connection} {len(data)} {zlib.crc32(data)}"
            case Started() | Ticked() | Stopping():
                what = f"< {type(event).__name__}"
            case _:
                what = f"< {event}"
        self.trace(name, what)
