"""Which sessions are heard of in time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replispec.metastore.zookeeper.core.sessions import Sessions
from replispec.wire.zookeeper.machines import metastore_session as machine

TICK = 2_000


def table(*timeouts: int) -> Sessions:
    """Sessions that are on record from the time 0, numbered from 1."""
    sessions = Sessions(TICK, 4_000, 40_000)
    sessions.restore(enumerate(timeouts, 1), 0)
    return sessions


def test_a_wish_is_granted_within_what_is_allowed() -> None:
    sessions = table()
    wishes = (0, 4_000, 6_000, 10**9)
    granted = [sessions.ask(each, each, 1, 0).variables.timeout for each in wishes]
    assert granted == [4_000, 4_000, 6_000, 40_000]


@given(
    signs=st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from((1, 2, 3))), max_size=60),
    timeouts=st.tuples(*[st.integers(4_000, 40_000)] * 3),
)
def test_nobody_expires_before_its_timeout_nor_two_ticks_after_it(
    signs: list[tuple[int, int]], timeouts: tuple[int, int, int]
) -> None:
    sessions, last, now = table(*timeouts), dict.fromkeys((1, 2, 3), 0), 0
    for session, timeout in zip((1, 2, 3), timeouts, strict=True):
        sessions.take_over(session, timeout, session, 0, owned=True)
    for pause, session in (*signs, (100_000, 1)):
        end = now + pause
        while (deadline := sessions.deadline_ms()) is not None and deadline <= end:
            for expired in sessions.over(deadline):
                silent = deadline - last[expired]
                assert timeouts[expired - 1] < silent <= timeouts[expired - 1] + 2 * TICK
                sessions.take(expired, machine.EndRecorded(), deadline)
                del last[expired]
        now = end
        if session in last:
            sessions.hear(session, now)
            last[session] = now
    assert not last.keys() - {1}


def test_nobody_pays_for_the_time_in_which_nobody_was_listened_to() -> None:
    sessions = table(6_000)
    sessions.excuse(60_000)
    assert sessions.over(64_000) == ()
    assert sessions.over(70_000) == (1,)


def test_a_session_that_ends_is_not_gone_on_with() -> None:
    sessions = table(6_000)
    sessions.take_over(1, 6_000, 10, 0, owned=True)
    assert sessions.is_open(1)
    assert sessions.take(1, machine.CloseAsked(), 0).effects == ("record_end",)
    assert not sessions.is_open(1)
    assert sessions.over(100_000) == ()
    assert sessions.take_over(1, 6_000, 11, 0, owned=True).effects == ("refuse",)
    assert "answer_close" in sessions.take(1, machine.EndRecorded(), 0).effects
    assert len(sessions) == 0
    assert sessions.take_over(1, 6_000, 11, 0, owned=True).effects == ("refuse",)
    assert sessions.deadline_ms() is None


def test_an_end_that_is_not_on_record_is_none() -> None:
    sessions = table(6_000)
    assert sessions.over(8_000) == (1,)
    assert sessions.over(100_000) == ()
    sessions.take(1, machine.EndNotRecorded(), 9_000)
    assert sessions.is_open(1)
    assert sessions.deadline_ms() == 16_000
    assert sessions.over(100_000) == (1,)


def test_a_session_moves_to_the_connection_that_speaks_for_it_last() -> None:
    sessions = table(6_000)
    assert sessions.take_over(1, 6_000, 10, 0, owned=True).before is None
    assert sessions.take_over(1, 6_000, 11, 0, owned=True).before == 10
    assert sessions.take(1, machine.ConnectionEnded(10), 0).effects == ()
    assert sessions.connection(1) == 11
