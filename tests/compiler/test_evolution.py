"""Every edit of a specification gets a verdict: what it breaks, for whom, and nothing goes unsaid."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from replispec.compiler.evolution.judge import Change, changes
from replispec.compiler.evolution.read import read_specification
from replispec.compiler.evolution.walk import SpecNode
from tests.compiler.evolution_edits import EDITS, Edit
from tests.compiler.small_specification import write


@cache
def _before() -> dict[str, SpecNode]:
    with tempfile.TemporaryDirectory(prefix="replispec-test-") as folder:
        return read_specification(write(Path(folder, "spec")))


@cache
def _found(batch: tuple[Edit, ...]) -> tuple[Change, ...]:
    """The changes that follow from all these edits, made in one copy."""
    with tempfile.TemporaryDirectory(prefix="replispec-test-") as folder:
        pairs = [pair for edit in batch for pair in edit.edits]
        after = read_specification(write(Path(folder, "spec"), pairs))
    old = _before()
    return tuple(change for family in old for change in changes(old[family], after[family]))


def _batch(edit: Edit) -> tuple[Edit, ...]:
    return tuple(each for each in EDITS if each.batch == edit.batch)


def test_two_equal_specifications_do_not_differ() -> None:
    assert _found(()) == ()


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.id)
def test_an_edit_has_the_verdict(edit: Edit) -> None:
    found = {(change.kind, change.id, change.what): change.says for change in _found(_batch(edit))}
    assert [each for each in edit.expected if each not in found] == []
    assert edit.says in found[edit.expected[0]]


@pytest.mark.parametrize("batch", sorted({edit.batch for edit in EDITS}))
def test_nothing_is_said_that_was_not_edited(batch: str) -> None:
    edits = tuple(edit for edit in EDITS if edit.batch == batch)
    expected = sorted(each for edit in edits for each in edit.expected)
    assert sorted((change.kind, change.id, change.what) for change in _found(edits)) == expected


def test_every_kind_of_object_is_edited_at_least_once() -> None:
    kinds = {node.kind for root in _before().values() for node in root.below()} - {"family"}
    batches = {_batch(edit) for edit in EDITS}
    edited = {
        node.kind for batch in batches for change in _found(batch) for node in change.difference.node.up()
    }
    assert kinds - edited == set()
