"""Conditions are asked once for each combination of what they name; hashes are found in any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from replispec.explorer.conditions import Condition, fields_read
from replispec.explorer.tables import Combinations, Values
from replispec.explorer.visited import Visited
from replispec.runtime.primitives.systems import Read


@dataclass(frozen=True, slots=True)
class Broker:
    """As an instance of a system is."""

    number: int
    log: bytes = b""
    role: str = "replica"


@dataclass(frozen=True, slots=True)
class Run:
    """As what a machine has reached is."""

    state: str
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Admin:
    """An instance with a machine."""

    run: Run


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


def test_of_a_field_no_more_than_what_is_read_of_it_tells_values_apart() -> None:
    """What one expression reads of it, another may need whole."""
    idle = Read(lambda world: all(a.run.state == "idle" for a in world.admin), ("world",))
    same = Read(lambda self, told: told(self.run) and self.run.state, ("self", "told"))
    values = Values()
    runs = [Run("idle", (1,)), Run("idle", (2,)), Run("busy", (2,))]
    rows = np.array([values.number(Admin(each)) for each in runs], np.int32)[:, None]
    for reads, asked in (([idle], 2), ([idle, same], 3)):
        seen: list[Any] = []

        def is_idle(given: Mapping[int, Any], seen: list[Any] = seen) -> bool:
            seen.append(given[0])
            return bool(given[0].run.state == "idle")

        condition = Condition([0], fields_read(reads), [values], is_idle)
        assert condition.of(rows).tolist() == [True, True, False]
        assert len(seen) == asked


def test_pairs_have_the_same_numbers_in_a_table_and_in_their_order() -> None:
    """Few pairs among many that could be leave no table; the numbers of those met before stay."""
    random = np.random.default_rng(5)
    met: dict[tuple[int, int, int], int] = {}
    combinations = Combinations(3)
    for size in (3, 40, 2_000, 2_000_000, 500):
        columns = [random.integers(0, size, 400).astype(np.int32) for _ in range(3)]
        numbers, fresh = combinations.of(columns)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        assert {rows[index] for index in fresh} == set(rows) - met.keys()
        for row, number in zip(rows, numbers.tolist(), strict=True):
            assert met.setdefault(row, number) == number
    assert len(set(met.values())) == len(met) > 1_500


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
