"""What goes wrong in a cluster of partitions, beside what goes wrong in any: sessions end under processes
that only pause, brokers are back before anybody saw them end, commands are lost after what they tell is on
record."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.sim.nemesis import Nemesis, Strikes
from tests.sim_kafka.cluster import CONTROLLERS, METASTORE
from tests.sim_kafka.settings import SESSION_MS

PAST_MS: Final = 3_000


class PartitionsNemesis(Nemesis):
    """See the module; `Nemesis` knows the metastore as one of the controllers."""

    def _all_strikes(self) -> Strikes:
        return (
            *super()._all_strikes(),
            (4, self._back_at_once),
            (4, self._expire),
            (3, self._expire_controller),
            (4, self._lose_commands),
            (3, self._restart_metastore),
        )

    def _back_at_once(self) -> None:
        """A broker ends and begins again before its session is over."""
        name = self._master() if self._rng.happens(600) else self._rng.one_of(self._brokers)
        self._kill(name)
        self._later(self._rng.between(1, 300), partial(self._start, name))

    def _expire(self) -> None:
        """A broker pauses for longer than its session lives."""
        self._pause_past(self._master() if self._rng.happens(600) else self._rng.one_of(self._brokers))

    def _expire_controller(self) -> None:
        self._pause_past(self._rng.one_of(CONTROLLERS))

    def _pause_past(self, name: str) -> None:
        lasts_ms = self._rng.between(SESSION_MS, SESSION_MS + PAST_MS)
        self._tell(f"pause of {name}, past its session", lasts_ms)
        if self._world.processes[name].is_alive:
            self._world.pause(name)
            self._later(lasts_ms, partial(self._world.go_on, name))

    def _lose_commands(self) -> None:
        """No broker hears of what controllers write for a while; then one of those ends."""
        lasts_ms = self._rng.between(100, 2_500)
        self._tell("commands are lost, and a controller ends", lasts_ms)
        for controller in CONTROLLERS:
            for broker in self._brokers:
                self._block(controller, broker, lasts_ms)
        self._kill(self._master())
        self._later(lasts_ms, partial(self._kill, self._rng.one_of(CONTROLLERS)))

    def _restart_metastore(self) -> None:
        self._kill(METASTORE)
