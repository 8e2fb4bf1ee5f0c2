"""An administrator has old messages deleted (329), and queues keep their positions without any."""

from __future__ import annotations

import pytest

from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.options import RetentionOptions
from tests.broker.simulated_set import LOG_FILE_BYTES, OK, BrokerSet

WHEN_ASKED = RetentionOptions(file_reserved_time=0, delete_when="")


def emptied() -> tuple[BrokerSet, str, str]:
    """A master and its replica. Three messages of a queue are deleted at both, because somebody asked."""
    brokers = BrokerSet()
    first, second = brokers.pair(retention=WHEN_ASKED)
    for number in range(3):
        assert brokers.send(first, b"m")[1].queue_offset == number
    fill(brokers, first)
    for number, address in ((1, first), (2, second)):
        assert brokers.ask(address, RequestCode.DELETE_EXPIRED_COMMITLOG).header.code == OK
        log = brokers.broker(number)._log.store.log
        brokers.until(lambda log=log: log.first > 0)  # type: ignore[misc]
    return brokers, first, second


def fill(brokers: BrokerSet, address: str) -> None:
    """More of another topic than two files hold."""
    for _ in range(6):
        assert brokers.send(address, bytes(30_000), topic="Filler")[0] == OK
    brokers.until(lambda: brokers.broker(1)._log.safe_to_delete(False) > 2 * LOG_FILE_BYTES)
    brokers.world.run_for(2_000)


def ends(brokers: BrokerSet, address: str) -> tuple[int, int]:
    """Where a queue begins and ends."""
    found = []
    for code in (RequestCode.GET_MIN_OFFSET, RequestCode.GET_MAX_OFFSET):
        answer = brokers.ask(address, code, GetMaxOffsetRequest("T", 0))
        found.append(GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset or 0)
    return found[0], found[1]


def test_until_somebody_asks_nothing_goes() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(retention=WHEN_ASKED)
    fill(brokers, first)
    brokers.world.run_for(60_000)
    assert brokers.broker(1)._log.store.log.first == 0


@pytest.mark.parametrize("power", [False, True])
def test_a_queue_whose_messages_are_all_deleted_goes_on_behind_them_after_a_restart(power: bool) -> None:
    brokers, first, second = emptied()
    assert ends(brokers, first) == (3, 3)
    brokers.world.kill("broker1", power=power)
    brokers.until(lambda: brokers.broker(2).serves)
    assert ends(brokers, second) == (3, 3), "a member that was asked, too, counts the same"
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    brokers.world.kill("broker2", power=power)
    brokers.until(lambda: brokers.broker(1).serves)
    assert ends(brokers, first) == (3, 3)
    assert brokers.send(first, b"n")[1].queue_offset == 3
