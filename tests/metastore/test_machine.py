"""Sessions stand in one table, which tells each of its ticks when it must; each is what the machine is if it
is told of every tick."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.sessions import Sessions
from replispec.runtime.primitives.machines import step
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.machines import metastore_session as machine
from replispec.wire.zookeeper.options import MetastoreOptions

TICK, LEAST, MOST = 2_000, 4_000, 40_000
ALIVE = (machine.State.CONNECTED, machine.State.DISCONNECTED)
STEPS = st.one_of(
    st.tuples(st.just("heard"), st.just(0)),
    st.tuples(st.just("ticks"), st.integers(1, 6)),
    st.tuples(st.just("taken over"), st.integers(0, 60_000)),
    st.tuples(st.just("stolen"), st.just(0)),
    st.tuples(st.just("ended"), st.integers(0, 3)),
    st.tuples(st.just("closed"), st.just(0)),
    st.tuples(st.just("recorded"), st.just(0)),
    st.tuples(st.just("not recorded"), st.just(0)),
    st.tuples(st.just("later"), st.integers(1, 900)),
)


class Beside:
    """One session by the machine, told of every tick at its end, and the same one in the table."""

    def __init__(self, wish: int) -> None:
        self.state, self.variables = machine.State.CONNECTING, machine.Variables()
        self.table = Sessions(TICK, LEAST, MOST)
        self.now_ms = 1_000_000_000
        self.connection = 1
        asked = self.machine(machine.SessionAsked(wish, 1, TICK, LEAST, MOST))
        assert self.table.ask(7, wish, 1, self.now_ms).effects == asked
        self.both(machine.Recorded())

    def machine(self, event: Any) -> tuple[str, ...]:
        """Step the machine; the effects."""
        stepped = step(machine.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = stepped.state, stepped.variables
        return tuple(stepped.effects)

    def both(self, event: Any) -> None:
        """The same event for both, with the same effects."""
        assert self.table.take(7, event, self.now_ms).effects == self.machine(event)

    def tick(self) -> None:
        """A tick is over: the table is asked when it wants to be."""
        self.now_ms = (self.now_ms // TICK + 1) * TICK
        ends = "record_end" in self.machine(machine.TickOver())
        deadline_ms = self.table.deadline_ms()
        is_due = deadline_ms is not None and deadline_ms <= self.now_ms
        assert (self.table.over(self.now_ms) == (7,) if is_due else not ends) is (ends or not is_due)

    def take(self, what: str, number: int) -> None:
        """One step of both."""
        if what == "heard" and self.state is machine.State.CONNECTED:
            self.machine(machine.Heard())
            self.table.hear(7, self.now_ms)
        elif what == "ticks":
            for _ in range(number):
                if self.state in ALIVE:
                    self.tick()
        elif what == "later":
            self.now_ms = min(self.now_ms + number, (self.now_ms // TICK + 1) * TICK - 1)
        elif what in ("taken over", "stolen"):
            self.connection += 1
            owned = what == "taken over"
            self.both(machine.TakenOver(owned, number, self.connection, TICK, LEAST, MOST))
        elif what == "ended":
            self.both(machine.ConnectionEnded(max(1, self.connection - number)))
        elif what == "closed" and self.state is machine.State.CONNECTED:
            self.both(machine.CloseAsked())
        elif "recorded" in what and self.state in (machine.State.CLOSING, machine.State.EXPIRING):
            self.both(machine.EndRecorded() if what == "recorded" else machine.EndNotRecorded())


@given(wish=st.integers(0, 60_000), steps=st.lists(STEPS, max_size=30))
def test_the_table_of_sessions_does_what_the_machine_does(wish: int, steps: list[tuple[str, int]]) -> None:
    both = Beside(wish)
    for what, number in steps:
        both.take(what, number)
        assert both.table.is_open(7) is (both.state in ALIVE)
        is_over = both.state in (machine.State.CLOSED, machine.State.EXPIRED)
        assert both.table.connection(7) == (None if is_over else both.variables.connection)
        assert len(both.table) == (not is_over)
    for _ in range(40):
        if both.state in ALIVE:
            both.tick()
        assert both.table.is_open(7) is (both.state in ALIVE)


def test_the_defaults_are_two_and_twenty_ticks() -> None:
    options = MetastoreOptions()
    assert (options.min_session_timeout_ms, options.max_session_timeout_ms) == (LEAST, MOST)
    assert options.tick_time_ms == TICK
