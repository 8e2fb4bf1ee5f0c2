"""Sessions, kept in one table, are what the machine `metastore_session` says of each."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.sessions import Sessions, granted_ms
from replispec.runtime.primitives.machines import step
from replispec.runtime.zookeeper import rules
from replispec.wire.zookeeper.machines import metastore_session as machine
from replispec.wire.zookeeper.options import MetastoreOptions

TICK, LEAST, MOST = 2_000, 4_000, 40_000
STEPS = st.one_of(
    st.tuples(st.just("heard"), st.just(0)),
    st.tuples(st.just("ticks"), st.integers(1, 6)),
    st.tuples(st.just("taken over"), st.integers(0, 60_000)),
    st.tuples(st.just("stolen"), st.just(0)),
    st.tuples(st.just("ended"), st.integers(0, 3)),
    st.tuples(st.just("closed"), st.just(0)),
    st.tuples(st.just("later"), st.integers(1, 900)),
)


class Beside:
    """One session by the machine, and the same one in the table."""

    def __init__(self, wish: int) -> None:
        self.state, self.variables = machine.State.CONNECTING, machine.Variables()
        self.table = Sessions(TICK)
        self.now_ms = 1_000_000_000
        self.connection = 1
        self.machine(machine.SessionAsked(wish, 1, TICK, LEAST, MOST))
        self.machine(machine.Recorded())
        self.table.begin(7, granted_ms(wish, LEAST, MOST), self.now_ms)
        self.table.attach(7, 1)

    def machine(self, event: Any) -> tuple[str, ...]:
        """Step the machine; the effects."""
        stepped = step(machine.MACHINE, self.state, self.variables, event, rules)
        self.state, self.variables = stepped.state, stepped.variables
        return tuple(stepped.effects)

    def tick(self) -> None:
        """A tick is over: the table is asked when it wants to be."""
        self.now_ms = (self.now_ms // TICK + 1) * TICK
        self.machine(machine.TickOver())
        deadline_ms = self.table.deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            for session in self.table.expired(self.now_ms):
                self.table.close(session)
                self.table.end(session)

    def take(self, what: str, number: int) -> None:
        """One step of both."""
        is_connected = self.state is machine.State.CONNECTED
        if what == "heard" and is_connected:
            self.machine(machine.Heard())
            self.table.hear(7, self.now_ms)
        elif what == "ticks":
            for _ in range(number):
                if self.is_alive:
                    self.tick()
        elif what == "later":
            self.now_ms = min(self.now_ms + number, (self.now_ms // TICK + 1) * TICK - 1)
        elif what in ("taken over", "stolen"):
            owned = what == "taken over"
            self.connection += 1
            did = self.machine(machine.TakenOver(owned, number, self.connection, TICK, LEAST, MOST))
            is_taken = owned and self.table.is_open(7)
            assert ("grant" in did) == is_taken
            if is_taken:
                self.table.grant(7, granted_ms(number, LEAST, MOST), self.now_ms)
                self.table.attach(7, self.connection)
        elif what == "ended":
            connection = max(1, self.connection - number)
            self.machine(machine.ConnectionEnded(connection))
            self.table.detach(7, connection)
        elif what == "closed" and is_connected:
            self.machine(machine.CloseAsked())
            self.table.close(7)
            self.table.end(7)

    @property
    def is_alive(self) -> bool:
        """Whether the machine says that it lives."""
        return self.state in (machine.State.CONNECTED, machine.State.DISCONNECTED)


@given(wish=st.integers(0, 60_000), steps=st.lists(STEPS, max_size=30))
def test_the_table_of_sessions_does_what_the_machine_does(wish: int, steps: list[tuple[str, int]]) -> None:
    both = Beside(wish)
    for what, number in steps:
        both.take(what, number)
        assert both.table.is_open(7) is both.is_alive
        is_connected = both.state is machine.State.CONNECTED
        assert both.table.connection(7) == (both.variables.connection if is_connected else None)
    for _ in range(40):
        if both.is_alive:
            both.tick()
        assert both.table.is_open(7) is both.is_alive


def test_the_defaults_are_two_and_twenty_ticks() -> None:
    options = MetastoreOptions()
    assert (options.min_session_timeout_ms, options.max_session_timeout_ms) == (LEAST, MOST)
    assert options.tick_time_ms == TICK
