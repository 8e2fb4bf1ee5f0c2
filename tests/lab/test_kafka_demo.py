"""What the demo of partitions demands of what is read back."""

from __future__ import annotations

import pytest

from lab.errors import LabError
from lab.kafka.demo import demand_in_order


def values(*numbers: int) -> list[str]:
    return [f"p0-{each}" for each in numbers]


def test_a_record_may_be_there_twice_and_one_that_was_not_acknowledged_too() -> None:
    demand_in_order(0, {*values(1, 2, 10)}, values(0, 1, 2, 1, 2, 10))


@pytest.mark.parametrize(
    ("acknowledged", "read", "fault"),
    [
        ((1, 2), (1, 3), "1 of 2 records are not read"),
        ((1, 2), (2, 1), "out of order"),
        ((), (), "0 of 0 records are not read"),
    ],
    ids=["one is gone", "one is before its turn", "nothing was acknowledged"],
)
def test_what_is_gone_or_out_of_order_is_refused(
    acknowledged: tuple[int, ...], read: tuple[int, ...], fault: str
) -> None:
    with pytest.raises(LabError, match=fault):
        demand_in_order(0, {*values(*acknowledged)}, values(*read))
