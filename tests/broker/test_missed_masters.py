"""A master that only its controller misses: what it goes on acknowledging is in the log of who follows it."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.codes import RequestCode
from tests.broker.simulated_set import OK, BrokerSet, message
from tests.broker.test_promises import texts, trio

HEARING_MS = 1_500
LETS_GO = "letting go of the master, which its controller misses"
GOES_ON = "going on with the master, which is heard again"


def _missed(seed: int) -> tuple[BrokerSet, list[str]]:
    """A set of three whose sends wait for two; the controller has just begun to miss its master."""
    brokers, addresses = trio(seed)
    brokers.world.network.block("broker1", "controller")
    brokers.until(lambda: _told(brokers, "broker lost") == 1)
    return brokers, addresses


def _told(brokers: BrokerSet, what: str) -> int:
    return sum(note.what == what for _, note in brokers.notes)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_a_missed_master_acknowledges_until_somebody_follows_is_not_lost(seed: int) -> None:
    """Both had the same in their last heartbeats; one of them copies three messages more."""
    brokers, addresses = _missed(seed)
    brokers.world.run_for(HEARING_MS - 200)
    brokers.world.network.block("broker1", "broker2")
    acknowledged = [b"old-%d" % number for number in range(3)]
    assert [brokers.send(addresses[0], text)[0] for text in acknowledged] == [OK] * 3
    brokers.until(lambda: any(brokers.broker(number).serves for number in (2, 3)))
    brokers.world.network.heal()
    brokers.until(lambda: brokers.broker(3).serves and brokers.members(3) == {1, 2, 3})
    assert texts(brokers, addresses[2]) == acknowledged


@pytest.mark.parametrize("seed", [1, 2])
def test_who_let_go_of_a_missed_master_acknowledges_nothing_more_with_it(seed: int) -> None:
    """Nobody hears of the election; the old master has nobody to acknowledge with all the same."""
    brokers, addresses = _missed(seed)
    brokers.until(lambda: _told(brokers, LETS_GO) == 2)
    for number in (2, 3):
        brokers.world.network.block("controller", f"broker{number}")
    waiting = brokers.asked(addresses[0], RequestCode.SEND_MESSAGE_V2, message("T", 0), b"old-0")
    brokers.world.run_for(2_000)
    assert not [each for each in waiting if getattr(each, "header").code == OK]  # noqa: B009


def _slowly_let_go_of(seed: int) -> tuple[BrokerSet, list[str]]:
    """One of its replicas has let go of the missed master; the other cannot ask the controller."""
    brokers, addresses = _missed(seed)
    brokers.world.run_for(HEARING_MS - 200)
    brokers.world.network.block("broker3", "controller")
    brokers.until(lambda: _told(brokers, LETS_GO) == 1)
    return brokers, addresses


@pytest.mark.parametrize("seed", [1, 2])
def test_a_missed_master_that_is_heard_again_goes_on_with_those_who_let_go_of_it(seed: int) -> None:
    brokers, addresses = _slowly_let_go_of(seed)
    brokers.world.network.heal()
    brokers.until(lambda: _told(brokers, GOES_ON) == 1, 500)
    assert brokers.send(addresses[0], b"old-0")[0] == OK
    assert brokers.master().master_epoch == 1
    brokers.until(lambda: brokers.epochs(addresses[1]).max_offset == brokers.epochs(addresses[0]).max_offset)


def test_the_answer_says_that_the_master_is_missed_only_while_an_election_waits_for_it() -> None:
    brokers, _ = _slowly_let_go_of(1)
    assert brokers.master().master_missed
    brokers.until(lambda: brokers.master().master_broker_id != 1, 1_000)
    assert brokers.master().master_missed is None
