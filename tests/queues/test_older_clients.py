"""Clients of releases before static topics: they name physical queues, and nothing that they send is lost."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.codes import RequestCode
from tests.broker.simulated_set import OK, BrokerSet
from tests.queues.test_asking_brokers import A0, B4, ERROR, bodies
from tests.queues.test_static_queues import NOT_LEADER, ends, pulled, sent
from tests.queues.two_sets import Sets, with_liar

B0 = ("broker-b", 0, 0)
# What a client of 4.9.8 says of itself.
RELEASE = 409


def old_send(brokers: BrokerSet, address: str, queue: int) -> tuple[int, int | None, int | None]:
    """Send as such a client does: code, queue and offset of the answer."""
    return sent(brokers, address, queue, broker_name=None)


def test_a_queue_that_is_written_is_taken_at_its_word() -> None:
    sets = Sets("a")
    address = sets.at["broker-a"]
    sets.map(5, [("broker-a", 3, 10_000)], to=["broker-a"])
    assert old_send(sets, address, 3) == (OK, 3, 0)
    assert pulled(sets, address, 10_000)[:2] == (OK, 10_001)
    code, found, _ = sets.pull(address, 0, topic="S", queue=3)
    assert (code, found.next_begin_offset, found.offset_delta) == (OK, 1, None)


@pytest.mark.parametrize("forwards", [True, False])
def test_what_is_sent_to_a_queue_that_moved_away_is_read_where_it_went(forwards: bool) -> None:
    sets = Sets(forward_to_queue_leader=forwards)
    first, second = sets.at.values()
    sets.map(5, [A0])
    assert old_send(sets, first, 0) == (OK, 0, 0)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    assert old_send(sets, first, 0) == (OK, 0, 10_000)
    assert old_send(sets, second, 4) == (OK, 4, 1)
    assert pulled(sets, second, 0)[:2] == (OK, 1)
    assert pulled(sets, second, 10_000)[:2] == (OK, 10_002)
    # Whoever reads physical queues reads each message once.
    assert sets.pull(first, 0, topic="S", queue=0)[1].max_offset == 1
    assert sets.pull(second, 0, topic="S", queue=4)[1].max_offset == 2


def test_a_queue_that_was_left_in_favour_of_another_one_here_takes_nothing() -> None:
    sets = Sets("a")
    address = sets.at["broker-a"]
    sets.map(5, [A0], to=["broker-a"])
    old_send(sets, address, 0)
    sets.map(6, [A0, ("broker-a", 4, 10_000)], to=["broker-a"])
    assert old_send(sets, address, 0) == (OK, 0, 0)
    assert ends(sets, address) == (0, 10_001)
    assert bodies(sets, address, 10_000) == [b"m"]


def test_a_queue_of_no_logical_one_takes_nothing_either() -> None:
    sets = Sets()
    first, second = sets.at.values()
    sets.map(5, [A0], [B0])
    for queue in range(8):
        assert old_send(sets, first, queue)[:2] == (OK, queue)
        assert old_send(sets, second, queue)[:2] == (OK, queue)
    assert ends(sets, first)[1] == 8
    assert ends(sets, second, 1)[1] == 8


def test_a_broker_that_holds_nothing_hands_to_whoever_leads() -> None:
    sets = Sets("abc")
    sets.map(5, [A0], [B0])
    sets.map(5, [], [], to=["broker-c"])
    other = sets.at["broker-c"]
    assert [old_send(sets, other, queue)[:2] for queue in (0, 1, 5)] == [(OK, 0), (OK, 1), (OK, 5)]
    assert (ends(sets, sets.at["broker-a"])[1], ends(sets, sets.at["broker-b"], 1)[1]) == (1, 2)


def test_what_may_be_stored_is_not_called_a_matter_of_who_leads() -> None:
    sets, address, liar = with_liar([A0, ("broker-b", 3, 10_000)])
    # It is silent, and then hangs up.
    assert old_send(sets, address, 0)[0] == ERROR
    liar.says = lambda request: liar.server.close(request.connection)
    assert old_send(sets, address, 0)[0] == ERROR
    assert len(liar.sees(RequestCode.SEND_MESSAGE_V2)) == 2, "nothing is sent twice"
    sets.world.kill("liar")
    assert old_send(sets, address, 0)[0] == NOT_LEADER
    assert ends(sets, address, lo=False) == (0, 0)


def test_an_answer_that_is_none_is_not_handed_back() -> None:
    sets, address, liar = with_liar([A0, ("broker-b", 3, 10_000)])
    liar.says = lambda request: request.answer(OK, ext_fields={"msgId": "x", "queueId": "y"})
    assert old_send(sets, address, 0)[0] == ERROR
    assert sent(sets, address)[0] == ERROR


def test_a_client_that_names_the_broker_it_asks_reads_physical_queues_each_message_once() -> None:
    """The last releases of 4.x name the broker in every request."""
    sets = Sets()
    sets.client.speak(RELEASE)
    first, second = sets.at.values()
    sets.map(5, [A0])
    assert sent(sets, first, 0) == (OK, 0, 0)
    sets.map(6, [A0, B4], to=["broker-b", "broker-a"])
    assert sent(sets, first, 0) == (OK, 0, 10_000)
    assert sent(sets, second, 4, broker_name="broker-b") == (OK, 4, 1)
    assert pulled(sets, first, 0, bname="broker-a")[:4] == (OK, 1, 0, 1)
    assert pulled(sets, second, 0, queue=4, bname="broker-b")[:4] == (OK, 2, 0, 2)
    assert ends(sets, first, bname="broker-a") == (0, 1)
    assert ends(sets, second, 4, bname="broker-b") == (0, 2)
    # Whoever names no broker that there is means the logical queue.
    assert pulled(sets, second, 10_000)[:2] == (OK, 10_002)
