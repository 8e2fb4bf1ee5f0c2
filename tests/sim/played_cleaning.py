"""Plays stories of `cleaning`: an administrator removes brokers from the set of a real controller.

A broker that gets an identity is started here, one that falls silent is killed. What the brokers ask their
controller is held until the story has them ask it; they copy, and send heartbeats, as they like. After each
step the controller must know of the set what it does in the story, with the specification that is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from replispec.runtime.primitives.machines import Configuration
from replispec.wire.rocketmq.codes import RequestCode
from tests.sim.cluster import CONTROLLER, HOSTS
from tests.sim.played_set import SetPlayer
from tests.sim.played_story import AFTER_MS, Unplayable
from tests.sim.told import Told

ELECT = RequestCode.CONTROLLER_ELECT_MASTER
ALTER = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET
TEXTS = ("cluster_name", "addresses", "check_codes")
"""What the controller knows of a set that is called otherwise in the story."""


class CleaningPlayer(SetPlayer):
    """A world in which no broker has an identity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._told = Told(self.script)
        self._controller = self._told.place_of(CONTROLLER)
        self._begun = self._told.values[self._controller].set

    def prepare(self) -> None:
        """Brokers are started by the story."""

    def leave_alone(self) -> None:
        """After a story that ends without a master, an administrator goes on to name whoever lives."""
        self.world.run_for(AFTER_MS)
        if self.script["shape"] != "eventually":
            return
        for number in sorted(self._living()):
            if self._known().variables.master is None:
                self._wish_for(f"broker-{number}")

    def _step(self, step: Mapping[str, Any]) -> None:
        if not self._told.follow(step):
            raise Unplayable(f"{step['act']} cannot happen now")
        super()._step(step)
        # A controller that has found its master silent looks for another one at once.
        if step["act"] != "falls_silent":
            self._compare()

    def _compare(self) -> None:
        told, known = self._told.values[self._controller].set, self._known()
        if (told.state, numbers_of(told)) != (known.state, numbers_of(known)):
            raise Unplayable(f"the controller knows {numbers_of(known)}, not {numbers_of(told)}")

    def _act(self, step: Mapping[str, Any]) -> None:
        name = step["with"].get("one", "").replace(" ", "-")
        match step["act"]:
            case "grants_an_id":
                self.world.start(name)
                self._wait(lambda: _number(name) in self._living(), f"{name} is not heard")
            case "elects":
                self._serve(name, ELECT)
            case "designates":
                self._wish_for(name)
            case "expands":
                self._expand(name)
            case "removes_one":
                self._ask_to_remove(_number(name))
            case "removes_all":
                self._ask_to_remove(None)
            case "falls_silent":
                self.world.kill(name)
                self._wait(lambda: _number(name) not in self._living(), f"{name} is not missed")
            case "loses_the_master":
                self._wait(lambda: self._known().state.name == "LEADERLESS", "the controller misses nobody")
            case other:
                raise Unplayable(f"nobody plays {other}")

    def _known(self) -> Configuration[Any, Any]:
        """What the controller knows of the set; as the machine begins before a broker has an identity."""
        known: Configuration[Any, Any] = self._machines(CONTROLLER).get("set", self._begun)
        return known

    def _serve(self, name: str, code: int) -> None:
        """Let what a broker asks through, and the answer."""
        for is_answer in (False, True):
            wanted = (HOSTS[name], code)
            self._wait(
                lambda: self.gate.find(*wanted, is_answer=is_answer) is not None,  # noqa: B023
                f"{name} {'is told nothing' if is_answer else 'asks nothing'}",
            )
            found = self.gate.find(*wanted, is_answer=is_answer)
            assert found is not None, "it was waited for"
            self.gate.release(found)
        self.world.run_for(20)

    def _expand(self, name: str) -> None:
        """A broker copies from the master, until this asks it in."""
        known = self._known().variables
        if _number(name) in known.sync_state_set:
            return
        if self._machines(name)["role"].state.name == "UNDECIDED":
            self._serve(name, ELECT)
        self._serve(f"broker-{known.master}", ALTER)

    def _kept(self, place: str) -> Mapping[str, object]:
        if place != CONTROLLER:
            return {}
        told = self._told.values[self._controller]
        last = {
            name: getattr(told, name) for name in ("last_epoch", "last_set_epoch", "last_set", "last_master")
        }
        return {**last, **super()._kept(place)}


def _number(name: str) -> int:
    """The number of a broker, which is its id: it gets it in its turn."""
    return int(name.rpartition("-")[2])


def numbers_of(known: Configuration[Any, Any]) -> dict[str, object]:
    """What is known of a set, but for texts."""
    names = [each.name for each in fields(known.variables) if each.name not in TEXTS]
    return {name: getattr(known.variables, name) for name in names}
