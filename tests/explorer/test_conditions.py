"""Conditions are asked once for each combination of what they name; hashes are found in any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from replispec.explorer.conditions import Condition, fields_read
from replispec.explorer.tables import Values
from replispec.explorer.visited import Visited
from replispec.runtime.primitives.systems import Read


@dataclass(frozen=True, slots=True)
class Broker:
    """As an instance of a system is."""

    number: int
    log: bytes = b""
    role: str = "replica"


def test_names_in_loops_are_read_too() -> None:
    read = Read(
        lambda world: all(any(b.log for b in world.broker if b.role) for c in world.other), ("world",)
    )
    found = fields_read([read])
    assert found is not None
    assert {"log", "role", "broker"} <= found
    assert "number" not in found


def test_of_what_is_no_expression_nothing_is_known() -> None:
    assert fields_read([Read(len, ("self",))]) is None
    assert fields_read([Read(frozenset)]) == frozenset()


@pytest.mark.parametrize(("fields", "asked"), [(frozenset({"role"}), 2), (frozenset({"log"}), 3), (None, 4)])
def test_a_condition_is_asked_once_for_each_combination_of_what_it_names(
    fields: frozenset[str] | None, asked: int
) -> None:
    values = Values()
    logs = [Broker(1, b"a"), Broker(1, b"b"), Broker(1, b"c"), Broker(1, b"c", "master")]
    numbers = [values.number(each) for each in logs]
    seen: list[Any] = []

    def is_master(given: Mapping[int, Any]) -> bool:
        seen.append(given[0])
        return bool(given[0].role == "master")

    condition = Condition([0], fields, [values], is_master)
    rows = np.array(numbers + numbers, np.int32)[:, None]
    holds = condition.of(rows)
    assert len(seen) == asked
    if fields is None or "role" in fields:
        assert holds.tolist() == [False, False, False, True] * 2


def test_values_that_come_later_have_kinds_too() -> None:
    values = Values()
    first = values.number(Broker(1))
    condition = Condition([0], frozenset({"role"}), [values], lambda given: given[0].role == "master")
    assert condition.of(np.array([[first]], np.int32)).tolist() == [False]
    second = values.number(replace(Broker(1), role="master"))
    assert condition.of(np.array([[first], [second]], np.int32)).tolist() == [False, True]


def test_what_was_reached_is_found_whenever_it_was() -> None:
    random = np.random.default_rng(3)
    visited = Visited()
    known: dict[int, int] = {}
    for _ in range(40):
        hashes = np.unique(random.integers(0, 5_000, random.integers(1, 200)).astype(np.uint64))
        is_known, numbers = visited.find(hashes)
        assert is_known.tolist() == [int(each) in known for each in hashes]
        assert numbers.tolist() == [known.get(int(each), -1) for each in hashes]
        fresh = hashes[~is_known]
        given = np.arange(len(known), len(known) + len(fresh), dtype=np.int32)
        visited.add(fresh, given)
        known |= dict(zip(map(int, fresh), map(int, given), strict=True))
    assert len(known) > 2_000
