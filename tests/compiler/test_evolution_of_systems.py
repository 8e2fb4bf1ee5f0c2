"""A change of a system hurts nobody, and it is said what is promised or explored now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from replispec.compiler.evolution.judge import Change, changes
from replispec.compiler.evolution.read import read_specification
from replispec.compiler.evolution.verdict import Reach
from replispec.compiler.evolution.walk import SpecNode
from tests.explorer.walkthrough import File, steps
from tests.house.tree import ROOT

PROMISE = "always: till.desk.sold <= customer.wish.purchase"
EDITS = {
    "another promise": (
        PROMISE,
        "always: till.desk.sold < customer.wish.purchase",
        ("one_sale.sold_as_often_as_wanted", "holds"),
        "another thing is promised: till.desk.sold < customer.wish.purchase, no longer till.desk.sold <=",
    ),
    "one promise less": (
        "eventually: customer.wish.CONTENT",
        "eventually: customer.wish.CONTENT\n  more:\n    about: More.\n    always: till.desk.sold < 9",
        ("one_sale.more", "added"),
        "one more thing is promised",
    ),
    "a larger budget": ("wishes: 2", "wishes: 3", ("one_sale", "budgets wishes"), "3 times at most"),
    "more on their way": ("messages: 2", "messages: 3", ("one_sale", "messages max"), "3 messages"),
    "an act elsewhere": (
        "if: self.wish.CONTENT",
        "if: self.wish.WAITING",
        ("one_sale.wants", "condition"),
        "it happens where self.wish.WAITING holds, no longer where self.wish.CONTENT does",
    ),
    "something kept": (
        "    about: Who buys.\n",
        "    about: Who buys.\n    keeps: {paid: {type: bool, about: It has paid.}}\n",
        ("one_sale.customer.paid", "added"),
        "something else is explored: variable paid added",
    ),
    "another effect": (
        "ask: {asks: till}",
        "ask: {asks: till, once: true}",
        ("one_sale.customer", "effects ask"),
        "is explored with",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specification of docs/systems.md, before anything was mended."""
    folder = tmp_path_factory.mktemp("till")
    for step in steps():
        if isinstance(step, File) and not (path := folder / step.name).exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, "utf-8")
    options = "proto/replispec/options"
    shutil.copytree(ROOT / "spec" / options, folder / "spec" / options)
    return folder / "spec"


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, SpecNode]:
    """Its tree."""
    return read_specification(folder)


def found(folder: Path, before: dict[str, SpecNode], old: str, new: str) -> list[Change]:
    """What one edit of the system changes."""
    path = folder / "systems" / "till" / "one_sale.yaml"
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    try:
        return changes(before["till"], read_specification(folder)["till"])
    finally:
        path.write_text(text, "utf-8")


@pytest.mark.parametrize("name", EDITS)
def test_what_a_system_explores_or_promises_is_no_behaviour(
    name: str, folder: Path, before: dict[str, SpecNode]
) -> None:
    old, new, (identity, what), says = EDITS[name]
    (change,) = found(folder, before, old, new)
    assert (change.kind, change.id, change.what) == (Reach.COMPATIBLE, f"till {identity}", what)
    assert says in change.says
    assert change.says.endswith("; no program does anything else")


def test_another_word_about_a_promise_is_only_words(folder: Path, before: dict[str, SpecNode]) -> None:
    (change,) = found(folder, before, "    about: Who buys.\n", "    about: Who buys, or not.\n")
    assert change.kind is Reach.WORDS
