"""What goes wrong in a simulated cluster, and when: all of it from one stream of random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from replispec.runtime.sim import Rng, World
from replispec.runtime.world import Note
from tests.sim.history import Moment
from tests.sim.settings import PLAIN, Promise, Settings

RESTART_MS_MAX: Final = 1_500
CALM_MS: Final = 200
"""How often is looked whether the next fault of a careful nemesis may come."""
Strikes = Sequence[tuple[int, Callable[[], None]]]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong, told as a line."""

    at_ms: int
    what: str
    lasts_ms: int = 0


class Nemesis:
    """Plans faults for a world. `master` names the process of the master, as far as it is known.

    Processes that end are started again a little later, as a supervisor would; their clocks may have
    jumped. `heal` ends all that lasts.
    """

    def __init__(
        self,
        world: World,
        rng: Rng,
        *,
        controllers: Sequence[str],
        brokers: Sequence[str],
        others: Sequence[str],
        master: Callable[[], str],
        settings: Settings = PLAIN,
    ) -> None:
        # Unless None, a fault comes only when this is so, and is of one process alone.
        self.is_calm: Callable[[], bool] | None = None
        self._settings = settings
        self._busy_until_us = 0
        self.faults: list[Fault] = []
        self._world = world
        self._rng = rng
        self._controllers = controllers
        self._brokers = brokers
        self._servers = [*controllers, *brokers, *others]
        self._master = master
        self._is_over = False
        self._awaited: Moment | None = None
        self._awaited_strikes: Sequence[Callable[[], None]] = ()
        self._held_us: dict[str, int] = {}

    def plan(self, count: int, *, from_ms: int, until_ms: int) -> None:
        """Plan some faults within a span of time from now; at least one."""
        for _ in range(max(count, 1)):
            delay_us = self._rng.between(from_ms, until_ms) * 1_000
            self._world.after(delay_us, self._strike)

    def supervise(self) -> None:
        """Look for processes that have ended, from now on."""
        for name in self._servers:
            process = self._world.processes[name]
            if (
                not process.is_alive
                and not self._is_over
                and self._held_us.get(name, 0) <= self._world.now_us
            ):
                self._world.after(self._rng.below(RESTART_MS_MAX) * 1_000, partial(self._start, name))
        if not self._is_over:
            self._world.after(RESTART_MS_MAX * 1_000, self.supervise)

    def happened(self, moment: Moment) -> None:
        """Something that a client saw: if it was waited for, strike."""
        if moment is self._awaited and not self._is_over:
            self._awaited = None
            self._world.after(0, self._rng.one_of(self._awaited_strikes))

    def hear(self, note: Note) -> None:
        """Read a line of the log of a process, for the moment at which a set changes."""
        if note.what == "sync state set changed":
            self.happened(Moment.CHANGES)

    def heal(self) -> None:
        """End all faults and start all that does not run."""
        self._is_over = True
        self._world.network.heal()
        for name in self._servers:
            self._world.processes[name].disk.mend()
            self._world.go_on(name)
            self._start(name)

    def _start(self, name: str) -> None:
        is_held = self._held_us.get(name, 0) > self._world.now_us and not self._is_over
        if not self._world.processes[name].is_alive and not is_held:
            self._world.start(name)

    def _hold_down(self, name: str) -> None:
        """Now and then, who had the most comes back last."""
        if self._rng.happens(500):
            lasts_ms = self._rng.between(2_000, 6_000)
            self._tell(f"{name} stays down", lasts_ms)
            self._held_us[name] = self._world.now_us + lasts_ms * 1_000

    def _strike(self) -> None:
        if self._is_over:
            return
        if self.is_calm is None:
            self._draw(self._all_strikes())
        elif self._world.now_us >= self._busy_until_us and self.is_calm():
            self._draw(self._single_strikes())
        else:
            self._later(CALM_MS, self._strike)

    def _draw(self, strikes: Strikes) -> None:
        drawn = self._rng.below(sum(weight for weight, _ in strikes))
        for weight, strike in strikes:
            if drawn < weight:
                strike()
                return
            drawn -= weight

    def _all_strikes(self) -> Strikes:
        return (
            (4, self._kill_master),
            (2, self._kill_controller),
            (2, self._kill_any),
            (2, self._kill_two),
            (2, self._black_out),
            (4, self._wait_for_the_worst_moment),
            (4, self._wait_for_a_change),
            (2, self._pause),
            (3, self._isolate),
            (3, self._cut),
            (2, self._reset),
            (2, self._fail_disk),
            (3, self._crash_in_a_write),
            *(((4, self._forget),) if self._settings.forgets else ()),
        )

    def _single_strikes(self) -> Strikes:
        """What one process alone suffers; where the promise is of a master that stays, another one."""
        strikes: Strikes = (
            (6, lambda: self._kill(self._one())),
            (2, lambda: self._pause_one(self._one())),
            (2, lambda: self._isolate_room([self._one()])),
            (2, lambda: self._cut_off(self._one(), self._rng.one_of(self._servers))),
            *(((4, self._forget),) if self._settings.forgets else ()),
        )
        if self._settings.promise is Promise.WHILE_THE_MASTER_STAYS:
            return strikes[:3]
        if self._settings.waits_for_some:
            strikes = (*strikes, (14, self._hold_one_back))
        return (*strikes, (2, lambda: self._kill(self._rng.one_of(self._controllers))))

    def _one(self) -> str:
        master = self._master()
        if self._settings.promise is Promise.WHILE_THE_MASTER_STAYS:
            return self._rng.one_of([name for name in self._brokers if name != master])
        return master if self._rng.happens(600) else self._rng.one_of(self._brokers)

    def _hold_one_back(self) -> None:
        """One replica gets nothing more of what others acknowledge, and then the master ends."""
        master = self._master()
        late = self._rng.one_of([name for name in self._brokers if name != master])
        lasts_ms = self._rng.between(20, 900)
        self._tell(f"nothing from {master} to {late}, then its end", lasts_ms)
        self._block(master, late, lasts_ms)
        self._later(lasts_ms, partial(self._end, master))

    def _end(self, name: str) -> None:
        if not self._is_over:
            self._kill(name)

    def _tell(self, what: str, lasts_ms: int = 0) -> None:
        self._busy_until_us = max(self._busy_until_us, self._world.now_us + lasts_ms * 1_000)
        fault = Fault(self._world.now_us // 1_000, what, lasts_ms)
        self.faults.append(fault)
        self._world.trace("nemesis", f"{what} {lasts_ms}")

    def _kill(self, name: str) -> None:
        power = self._rng.happens(400) and self._settings.loses_power
        self._tell(f"{'power loss' if power else 'kill'} of {name}")
        self._world.kill(name, power=power)

    def _kill_master(self) -> None:
        self._hold_down(self._master())
        self._kill(self._master())

    def _kill_controller(self) -> None:
        self._kill(self._rng.one_of(self._controllers))

    def _kill_any(self) -> None:
        self._kill(self._rng.one_of(self._servers))

    def _kill_two(self) -> None:
        self._kill(self._master())
        self._kill(self._rng.one_of(self._servers))

    def _wait_for_the_worst_moment(self) -> None:
        self._awaited = self._rng.one_of(tuple(Moment))
        self._awaited_strikes = (self._black_out, self._kill_master)
        self._tell(f"the next time that {self._awaited.value}: a power loss, or the end of the master")

    def _wait_for_a_change(self) -> None:
        self._awaited, self._awaited_strikes = Moment.CHANGES, (self._lose_the_answer,)
        self._tell(
            f"the next time that {Moment.CHANGES.value}: the answer is lost, and one replica is cut off"
        )

    def _lose_the_answer(self) -> None:
        """The master does not hear that its set changed, one replica gets nothing any more, and soon it is
        the only broker."""
        master = self._master()
        cut_off = self._rng.one_of([name for name in self._brokers if name != master])
        lasts_ms = self._rng.between(200, 2_000)
        self._tell(f"nothing from {' or '.join(self._controllers)} to {master}; {cut_off} cut off", lasts_ms)
        for controller in self._controllers:
            self._block(controller, master, lasts_ms)
        self._block(master, cut_off, lasts_ms)
        self._block(cut_off, master, lasts_ms)
        self._later(lasts_ms, partial(self._leave_alone, cut_off))

    def _leave_alone(self, left: str) -> None:
        """All brokers but one lose their power, and stay down for a while."""
        if self._is_over:
            return
        names = [name for name in self._brokers if name != left]
        lasts_ms = self._rng.between(2_000, 6_000)
        self._tell(f"power loss of {', '.join(names)}, which stay down", lasts_ms)
        for name in names:
            self._held_us[name] = self._world.now_us + lasts_ms * 1_000
            self._world.kill(name, power=self._settings.loses_power)

    def _black_out(self) -> None:
        """All servers, or all brokers, lose their power at once."""
        names = self._servers if self._rng.happens(500) else list(self._brokers)
        self._hold_down(self._master())
        self._tell(f"power loss of {', '.join(names)}")
        for name in names:
            self._world.kill(name, power=self._settings.loses_power)

    def _pause(self) -> None:
        self._pause_one(self._master() if self._rng.happens(500) else self._rng.one_of(self._servers))

    def _pause_one(self, name: str) -> None:
        lasts_ms = self._rng.between(100, 6_000)
        self._tell(f"pause of {name}", lasts_ms)
        if self._world.processes[name].is_alive:
            self._world.pause(name)
            self._later(lasts_ms, partial(self._world.go_on, name))

    def _isolate(self) -> None:
        """One process, or the controllers with one of them, see nobody else."""
        name = self._master() if self._rng.happens(600) else self._rng.one_of(self._servers)
        room = [name]
        if self._rng.happens(300):
            room.append(self._rng.one_of([one for one in self._servers if one != name]))
        self._isolate_room(room)

    def _isolate_room(self, room: Sequence[str]) -> None:
        others = [one for one in self._servers if one not in room]
        lasts_ms = self._rng.between(200, 8_000)
        self._tell(f"{' and '.join(room)} alone", lasts_ms)
        for one in room:
            for other in others:
                self._block(one, other, lasts_ms)
                self._block(other, one, lasts_ms)

    def _cut(self) -> None:
        """From one process to another, in one direction or both."""
        one = self._rng.one_of(self._servers)
        self._cut_off(one, self._rng.one_of([name for name in self._servers if name != one]))

    def _cut_off(self, one: str, other: str) -> None:
        lasts_ms = self._rng.between(200, 8_000)
        both = self._rng.happens(500)
        self._tell(f"nothing from {one} to {other}{' and back' if both else ''}", lasts_ms)
        self._block(one, other, lasts_ms)
        if both:
            self._block(other, one, lasts_ms)

    def _block(self, source: str, target: str, lasts_ms: int) -> None:
        self._world.network.block(source, target)
        if self._settings.drops:
            self._world.network.forget(source, target)
        self._later(lasts_ms, partial(self._world.network.unblock, source, target))

    def _reset(self) -> None:
        one = self._rng.one_of(self._servers)
        other = self._rng.one_of([name for name in self._servers if name != one])
        self._tell(f"reset of all that {one} and {other} have open")
        self._world.network.reset(one, other)

    def _forget(self) -> None:
        """A machine between forgets the connections of two processes, or one direction of them."""
        one = self._rng.one_of(self._servers)
        other = self._rng.one_of([name for name in self._servers if name != one])
        both = self._rng.happens(500)
        self._tell(f"what {one} {'and' if both else 'sends'} {other} {'send' if both else 'gets'} vanishes")
        self._world.network.forget(one, other)
        if both:
            self._world.network.forget(other, one)

    def _fail_disk(self) -> None:
        name = self._rng.one_of(self._servers)
        reason = self._rng.one_of(("no space left on device", "input/output error"))
        lasts_ms = self._rng.between(50, 3_000)
        rng = self._rng.fork()
        per_mille = self._rng.one_of((50, 300, 1_000))
        self._tell(f"{reason}: {name}, {per_mille} of 1000 calls", lasts_ms)
        disk = self._world.processes[name].disk
        disk.plan = lambda _: reason if rng.happens(per_mille) else None

        def mend() -> None:
            disk.plan = None

        self._later(lasts_ms, mend)

    def _crash_in_a_write(self) -> None:
        name = self._master() if self._rng.happens(500) else self._rng.one_of(self._servers)
        number = self._rng.between(1, 40)
        self._tell(f"crash of {name} in its change {number} from now")
        self._world.processes[name].disk.crash_at(number)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._world.after(delay_ms * 1_000, action)
