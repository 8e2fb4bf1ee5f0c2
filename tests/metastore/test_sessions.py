"""Which sessions are heard of in time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.sessions import Sessions, granted_ms

TICK = 2_000


def test_a_wish_is_granted_within_what_is_allowed() -> None:
    assert [granted_ms(wish, 4_000, 40_000) for wish in (0, 4_000, 6_000, 10**9)] == [
        4_000,
        4_000,
        6_000,
        40_000,
    ]


@given(
    signs=st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from((1, 2, 3))), max_size=60),
    timeouts=st.tuples(*[st.integers(4_000, 40_000)] * 3),
)
def test_nobody_expires_before_its_timeout_nor_two_ticks_after_it(
    signs: list[tuple[int, int]], timeouts: tuple[int, int, int]
) -> None:
    sessions, last, now = Sessions(TICK), dict.fromkeys((1, 2, 3), 0), 0
    for session, timeout in zip((1, 2, 3), timeouts, strict=True):
        sessions.begin(session, timeout, 0)
    for pause, session in (*signs, (100_000, 1)):
        end = now + pause
        while (deadline := sessions.deadline_ms()) is not None and deadline <= end:
            for expired in sessions.expired(deadline):
                silent = deadline - last[expired]
                assert timeouts[expired - 1] < silent <= timeouts[expired - 1] + 2 * TICK
                sessions.end(expired)
                del last[expired]
        now = end
        if session in last:
            sessions.hear(session, now)
            last[session] = now
    assert not last.keys() - {1}


def test_nobody_pays_for_the_time_in_which_nobody_was_listened_to() -> None:
    sessions = Sessions(TICK)
    sessions.begin(1, 6_000, 0)
    sessions.excuse(60_000, 64_000)
    assert sessions.expired(64_000) == ()
    assert sessions.expired(70_000) == (1,)


def test_a_session_that_ends_is_not_gone_on_with() -> None:
    sessions = Sessions(TICK)
    sessions.begin(1, 6_000, 0)
    assert sessions.is_open(1)
    assert sessions.close(1)
    assert not sessions.close(1)
    assert not sessions.is_open(1)
    assert sessions.expired(100_000) == ()
    assert sessions.end(1) is None
    assert not sessions.is_open(1)
    assert sessions.deadline_ms() is None


def test_an_end_that_is_not_on_record_is_none() -> None:
    sessions = Sessions(TICK)
    sessions.begin(1, 6_000, 0)
    sessions.close(1)
    sessions.reopen(1, 7_000)
    assert sessions.is_open(1)
    assert sessions.expired(100_000) == (1,)


def test_a_session_moves_to_the_connection_that_speaks_for_it_last() -> None:
    sessions = Sessions(TICK)
    sessions.begin(1, 6_000, 0)
    assert sessions.attach(1, 10) is None
    assert sessions.attach(1, 11) == 10
    sessions.detach(1, 10)
    assert sessions.connection(1) == 11
    assert sessions.end(1) == 11
