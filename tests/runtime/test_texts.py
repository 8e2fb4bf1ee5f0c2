"""Digits that are part of a text of a peer's."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.texts import INT32, INT64, decimal_of


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "x", "\u0661", "\u00b2", "9" * 5_000])
def test_what_is_no_digits_or_endless_ones_is_no_number(text: str) -> None:
    assert decimal_of(text) is None


def test_a_number_is_one_up_to_its_bound() -> None:
    assert decimal_of("007") == 7
    for bound in (INT32[1], INT64[1]):
        assert decimal_of(str(bound), bound) == bound
        assert decimal_of(str(bound + 1), bound) is None
