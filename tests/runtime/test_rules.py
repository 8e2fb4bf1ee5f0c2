"""The pure algorithms against the golden examples of the specification, and what must hold of any input."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.json_messages import JsonMessage
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq import logical_queue, static_topic
from replispec.wire.rocketmq.controller import Property
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.rules import Rules

VECTORS = Path(__file__).parents[2] / "spec/vectors/rocketmq"
# The module offers what the generated protocol asks for: a type checker reads this line.
OFFERED: Rules = rules


def sources() -> dict[str, Any]:
    """Every algorithm's part of the specification, by name."""
    found: dict[str, Any] = {}
    for path in sorted(VECTORS.glob("*.yaml")):
        found |= yaml.safe_load(path.read_text("utf-8")).get("rules", {})
    return found


SOURCES = sources()
MESSAGES: dict[str, Any] = {**vars(logical_queue), **vars(static_topic)}
"""The classes of messages that examples are made of, by name."""


def examples() -> Iterator[Any]:
    for name, source in SOURCES.items():
        for vector in source["vectors"]:
            yield pytest.param(name, source, vector, id=f"{name}: {vector['name']}")


class Row(SimpleNamespace):
    """A message of an example; fields that it does not give are absent."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def given_value(kind: str, value: Any) -> Any:
    """An argument as a caller would hand it in."""
    if kind.startswith("set "):
        return frozenset(value)
    of = MESSAGES.get(kind.removeprefix("list ").removesuffix(" or none"))
    if of is not None:
        several: Any = list
        return made(several[of] if kind.startswith("list ") else of, value)
    if isinstance(value, list):
        return [Row(**item) if isinstance(item, dict) else item for item in value]
    return value


def made(kind: Any, value: Any) -> Any:
    """A message, or several, of which these fields are given."""
    several, is_message = get_args(kind), is_dataclass(kind)
    if value is None or not (several or is_message):
        return value
    if isinstance(value, list):
        return [made(several[0], each) for each in value]
    if is_message:
        kinds = get_type_hints(kind)
        return kind(**{name: made(_of_union(kinds[name]), each) for name, each in value.items()})
    return {key: made(several[1], each) for key, each in value.items()}


def _of_union(kind: Any) -> Any:
    return next((each for each in get_args(kind) if each is not NoneType), kind)


def said(value: Any) -> Any:
    """A message as the specification writes it: what it has."""
    if is_dataclass(value):
        every = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: said(each) for name, each in every if each is not None and name != "unknown"}
    if isinstance(value, list | tuple):
        return [said(each) for each in value]
    return {key: said(each) for key, each in value.items()} if isinstance(value, dict) else value


def plain(value: Any) -> Any:
    """An answer as the specification writes it."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, JsonMessage | dict):
        return said(value)
    if isinstance(value, tuple) and not all(isinstance(each, HaEpochEntry) for each in value):
        return said(value)
    if isinstance(value, tuple):
        return [{"epoch": entry.epoch, "start_offset": entry.start_offset} for entry in value]
    if isinstance(value, list):
        return [asdict(each) if isinstance(each, Property) else each for each in value]
    return value


@pytest.mark.parametrize(("name", "source", "vector"), list(examples()))
def test_a_golden_example_holds(name: str, source: Any, vector: Any) -> None:
    arguments = {
        each: given_value(kind, vector["given"][each]) for each, kind in source["parameters"].items()
    }
    answer = getattr(rules, name)(**arguments)
    assert plain(answer) == vector["result"]
    assert type(plain(answer)) is type(vector["result"])


def test_every_algorithm_is_specified_with_its_parameters() -> None:
    offered = {name: list(inspect.signature(getattr(rules, name)).parameters) for name in rules.__all__}
    assert offered == {name: list(source["parameters"]) for name, source in sorted(SOURCES.items())}


def test_the_six_examples_of_the_proposal_are_among_them() -> None:
    names = [vector["name"] for vector in SOURCES["consistent_point"]["vectors"]]
    assert [name for name in names if name.startswith("RIP-44")] == [
        "RIP-44 example 1",
        "RIP-44 example 2",
        "RIP-44 example 3",
        "RIP-44 example 4",
        "RIP-44 example 5, replica B",
        "RIP-44 example 5, replica C",
        "RIP-44 example 6",
    ]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[HaEpochEntry], int]:
    """Ascending epochs with ascending starts, and a log end after the last start."""
    numbers = sorted(draw(st.sets(st.integers(1, 6), max_size=4)))
    starts = sorted(draw(st.sets(st.integers(0, 50), min_size=len(numbers), max_size=len(numbers))))
    entries = [
        HaEpochEntry(epoch=each, start_offset=start) for each, start in zip(numbers, starts, strict=True)
    ]
    return entries, draw(st.integers(starts[-1] if starts else 0, 60))


def written(entries: list[HaEpochEntry], end: int) -> list[int]:
    """The epoch that wrote each byte of a log, its start included."""
    bounds = [*(entry.start_offset for entry in entries[1:]), end]
    first = entries[0].start_offset if entries else 0
    return [0] * first + [
        entry.epoch
        for entry, bound in zip(entries, bounds, strict=True)
        for _ in range(entry.start_offset, bound)
    ]


@given(histories(), histories())
def test_what_is_kept_lies_in_both_logs_and_the_newest_shared_epoch_agrees(
    ours: tuple[list[HaEpochEntry], int], theirs: tuple[list[HaEpochEntry], int]
) -> None:
    point = rules.consistent_point(*ours, *theirs)
    shared = {(each.epoch, each.start_offset) for each in ours[0]} & {
        (each.epoch, each.start_offset) for each in theirs[0]
    }
    assert (point is None) == (not shared)
    if point is not None:
        assert point <= min(ours[1], theirs[1])
        assert rules.consistent_point(*theirs, *ours) == point
        newest = max(shared)
        assert written(*ours)[newest[1] : point] == written(*theirs)[newest[1] : point]


@given(histories())
def test_a_log_agrees_with_itself_to_its_end(history: tuple[list[HaEpochEntry], int]) -> None:
    entries, end = history
    assert rules.consistent_point(entries, end, entries, end) == (end if entries else None)


@given(histories(), st.integers(0, 60))
def test_cut_epochs_start_before_the_cut(history: tuple[list[HaEpochEntry], int], offset: int) -> None:
    kept = rules.epochs_before(history[0], offset)
    assert list(kept) == history[0][: len(kept)]
    assert all(entry.start_offset < offset for entry in kept)


@given(histories(), st.integers(1, 9))
def test_epochs_stay_ascending_when_a_broker_becomes_master(
    history: tuple[list[HaEpochEntry], int], epoch: int
) -> None:
    entries = rules.epochs_as_master(history[0], epoch, history[1])
    assert entries[-1].epoch == epoch
    pairs = [(entry.epoch, entry.start_offset) for entry in entries]
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))


@given(st.permutations([(1, 0), (2, 500), (2, 510), (3, 900)]))
def test_starts_may_be_told_in_any_order(told: list[tuple[int, int]]) -> None:
    epochs: Any = ()
    for epoch, start in told:
        epochs = rules.with_start(epochs, epoch, start)
    assert [(entry.epoch, entry.start_offset) for entry in epochs] == [(1, 0), (2, 500), (3, 900)]


@given(
    st.integers(0, 9),
    st.lists(st.integers(0, 9), max_size=4),
    st.integers(0, 2),
    st.booleans(),
    st.integers(1, 5),
)
def test_every_acknowledged_byte_is_held_by_as_many_members_as_are_waited_for(
    log_end: int, acknowledged: list[int], unconnected: int, all_acknowledge: bool, in_sync_replicas: int
) -> None:
    others = len(acknowledged) + unconnected
    offset = rules.acknowledged_offset(
        log_end, acknowledged, others, all_acknowledge=all_acknowledge, in_sync_replicas=in_sync_replicas
    )
    needed = 1 + others if all_acknowledge else in_sync_replicas
    held = [sum(end > byte for end in (log_end, *acknowledged)) for byte in range(log_end)]
    assert offset == sum(holders >= needed for holders in held)
