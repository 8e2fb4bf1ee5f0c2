"""Elections that wait until the living members of their broker sets were heard, on the machine
`election_hearing`.

Only broker sets whose election waits are kept: as many as masters were lost within a hearing's time.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.wire.rocketmq.machines import election_hearing as machine
from replispec.wire.rocketmq.options import ControllerOptions

Elect = Callable[[str, int, int], None]
"""Told the broker set, the master that it lost, and the time in milliseconds."""
Tell = Callable[[str, int], None]
"""Told the broker set, and the time in milliseconds."""
_MISSED: Final = frozenset((machine.State.LETTING_GO, machine.State.LET_GO))


class Hearings:
    """The hearings of all broker sets; `elect` is called when one is over, `tell` when the members of a set
    are to ask who is master."""

    def __init__(self, options: ControllerOptions, elect: Elect, tell: Tell) -> None:
        self._options = options
        self._elect = elect
        self._tell = tell
        self._waiting: dict[str, _Hearing] = {}

    def lost(
        self, name: str, silent: int, members: AbstractSet[int], living: AbstractSet[int], now_ms: int
    ) -> None:
        """This master is lost: elect, now or when its followers were heard."""
        hearing = self._waiting.get(name) or _Hearing(name, self._options, self._elect, self._tell)
        self._waiting[name] = hearing
        event = machine.Lost(silent, frozenset(members), frozenset(living))
        self._take(hearing, event, now_ms)

    def heard(self, name: str, broker_id: int, now_ms: int, *, copying: bool) -> None:
        """A heartbeat of this broker was remembered; `copying` when it says that its log may still grow."""
        if (hearing := self._waiting.get(name)) is not None:
            self._take(hearing, machine.Heard(broker_id, copying=copying), now_ms)

    def gone(self, name: str, broker_id: int, now_ms: int) -> None:
        """This broker is lost."""
        if (hearing := self._waiting.get(name)) is not None:
            self._take(hearing, machine.Gone(broker_id), now_ms)

    def forget(self) -> None:
        """Elect nobody any more."""
        self._waiting.clear()

    def decided(self, name: str, master: int | None, now_ms: int) -> None:
        """Something was decided of this broker set, whose master this is now."""
        if (hearing := self._waiting.get(name)) is not None:
            self._take(hearing, machine.Decided(master), now_ms)

    def misses(self, name: str) -> bool:
        """Whether nobody may copy from the master of this broker set until one is elected."""
        hearing = self._waiting.get(name)
        return hearing is not None and hearing.runner.state in _MISSED

    def changed(self, options: ControllerOptions, now_ms: int) -> None:
        """An administrator has changed how long a hearing may take."""
        self._options = options
        for hearing in self._waiting.values():
            hearing.runner.timers.changed(options, now_ms)

    def ticked(self, now_ms: int) -> None:
        """Do what is due."""
        for hearing in tuple(self._waiting.values()):
            hearing.runner.ticked(now_ms)
            self._drop(hearing)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        times = (hearing.runner.deadline_ms() for hearing in self._waiting.values())
        return min((each for each in times if each is not None), default=None)

    def _take(self, hearing: _Hearing, event: machine.Event, now_ms: int) -> None:
        hearing.runner.take(event, now_ms)
        self._drop(hearing)

    def _drop(self, hearing: _Hearing) -> None:
        if hearing.runner.state is machine.State.QUIET:
            self._waiting.pop(hearing.name, None)


class _Hearing:
    """One broker set's; its methods are the effects of the machine."""

    def __init__(self, name: str, options: ControllerOptions, elect: Elect, tell: Tell) -> None:
        self.name = name
        self.runner = MachineRunner(machine.MACHINE, self, options)
        self._elect = elect
        self._tell = tell

    def elect(self, _event: object) -> Nothing:
        """Whoever had to be heard was."""
        self._elect(self.name, self.runner.variables.silent, self.runner.now_ms)
        return ()

    def tell_members(self, _event: object) -> Nothing:
        """Whether the master is missed is another now: have the living members ask."""
        self._tell(self.name, self.runner.now_ms)
        return ()
