"""Every edit of what binds a machine to messages, answers and records gets a verdict of its own."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from replispec.compiler.evolution.judge import Change, changes
from replispec.compiler.evolution.verdict import Reach
from replispec.compiler.evolution.walk import SpecNode, tree
from replispec.compiler.family import read_family
from tests.compiler.bound_family import FILES, bound_model, write

_B, _W = Reach.BEHAVIOUR, Reach.WORDS
_REFUSED = """\
    refused:
      - {if: header.by != none and header.by > local.limit, code: Told.FULL, remark: 'at most {local.limit}'}
"""
_UNKNOWN = "whoever follows the old specification does otherwise"


def _tree(edited: dict[str, str]) -> SpecNode:
    with tempfile.TemporaryDirectory(prefix="replispec-test-") as folder:
        write(Path(folder), edited)
        return tree("bound", {"machines": read_family(bound_model(), Path(folder)).machines})


@cache
def _before() -> SpecNode:
    return _tree({})


def edited(old: str, new: str) -> list[Change]:
    """What a comparison says of one edit; the old text stands once in all files."""
    places = [name for name, text in FILES.items() if old in text]
    assert len(places) == 1
    assert FILES[places[0]].count(old) == 1
    return changes(_before(), _tree({places[0]: FILES[places[0]].replace(old, new)}))


@pytest.mark.parametrize(
    ("old", "new", "kind", "name", "says"),
    [
        ("answer_name: Told.DONE", "answer_name: Told.BUSY", _B, "answer_name", "gets Told.BUSY where it"),
        ("{total: total}", "{total: total + 1}", _B, "answer_count", "answered with total + 1 instead of"),
        ("apache@2.0..", "apache@3.0..", _B, "answer_full", "holds in apache@3.0.., no longer in"),
        ("{members} of", "{members} in", _W, "answer_full", "for people"),
        ("{by: amount}", "{by: before}", Reach.WIRE, "counted", "what was logged by the old text"),
        (
            "by: header.by, members",
            "by: header.least, members",
            _B,
            "source counted",
            "read from header.least",
        ),
        (
            "local.limit, code: Told.FULL",
            "local.limit, code: Told.BUSY",
            _B,
            "source counted.refusal",
            "Told.BUSY",
        ),
        ("header.by > local.limit", "header.by > 9", _B, "source counted.refusal", "is refused when"),
        ("'at most {local", "'only {local", _W, "source counted.refusal", "for people"),
        ("missing: Told.BUSY", "missing: Told.FULL", _B, "", "gets Told.FULL where it got Told.BUSY"),
        (
            "    instance: header.name\n",
            "    instance: first(header.name, 'nobody')\n",
            _B,
            "source name_asked",
            "no longer one of header.name",
        ),
        (
            "header.name != none",
            "header.name != none and header.name != 'x'",
            _B,
            "source told",
            "is this event when header.name !=",
        ),
        ("[Told.DONE, Told.FULL]", "Told.DONE", _B, "source counted", "an answer is this event with"),
    ],
)
def test_an_edit_of_a_binding_has_one_verdict(old: str, new: str, kind: Reach, name: str, says: str) -> None:
    (change,) = edited(old, new)
    assert (change.kind, change.id.partition(" ")[2].partition(".")[2]) == (kind, name)
    assert says in change.says
    assert _UNKNOWN not in change.says


@pytest.mark.parametrize(
    ("old", "new", "name", "whats"),
    [
        (
            "counts_as: answer_count, releases: apache@2.0.., ",
            "",
            "counter.answer_full",
            {"counts as", "releases"},
        ),
        ("    body: {ids: members}\n", "", "counter.answer_count", {"body", "body_fields ids"}),
        (
            _REFUSED,
            "",
            "counter.source counted.refusal",
            {"removed"},
        ),
    ],
)
def test_what_is_no_longer_said_changes_behaviour(old: str, new: str, name: str, whats: set[str]) -> None:
    found = edited(old, new)
    assert {(change.kind, change.id, change.what) for change in found} == {
        (_B, f"bound {name}", what) for what in whats
    }
    assert [change for change in found if _UNKNOWN in change.says] == []
