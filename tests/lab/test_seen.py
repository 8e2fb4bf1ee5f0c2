"""What the run with a real Prometheus complains of."""

from __future__ import annotations

import pytest

from lab.rocketmq.seen import quoted, series_complaints

GOOD = {
    "__name__": "rocketmq_controller_term",
    "instance": "i",
    "job": "j",
    "address": "a",
    "group": "g",
    "peer_id": "n1",
}
BUCKET = {
    "__name__": "rocketmq_process_fsync_seconds_bucket",
    "instance": "i",
    "job": "j",
    "role": "r",
    "le": "1",
}


@pytest.mark.parametrize("series", [GOOD, BUCKET])
def test_what_is_declared_is_no_complaint(series: dict[str, str]) -> None:
    assert list(series_complaints(series)) == []


@pytest.mark.parametrize(
    ("series", "complaint"),
    [
        ({**GOOD, "__name__": "rocketmq_controller_rol"}, "is not declared"),
        ({**GOOD, "topic": "t"}, "has the labels"),
        ({name: value for name, value in GOOD.items() if name != "group"}, "has the labels"),
    ],
)
def test_a_name_or_label_too_much_or_too_little_is_found(series: dict[str, str], complaint: str) -> None:
    (found,) = series_complaints(series)
    assert complaint in found


def test_a_query_travels_as_it_is() -> None:
    assert quoted('a{b="c"}') == "%61%7B%62%3D%22%63%22%7D"
