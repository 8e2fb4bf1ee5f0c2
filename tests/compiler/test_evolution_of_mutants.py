"""What `make mutants` changes is never only words: a comparison names each edit for what it is.

A sample in every run; REPLISPEC_EDITS=all tries every single edit (`make test-full`).
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

from lab.edits import Edit, edits
from replispec.compiler.evolution.judge import changes
from replispec.compiler.evolution.read import read_specification
from replispec.compiler.evolution.verdict import Reach
from replispec.compiler.evolution.walk import SpecNode
from replispec.compiler.model.message import SpecificationError
from tests.compiler.specification import SPEC

SAMPLE = None if os.environ.get("REPLISPEC_EDITS") == "all" else 15
# Edits of one file are tried on a copy of the family and its log that holds only what the file needs.
NEEDED = (
    "proto",
    "constants/rocketmq",
    "vectors/rocketmq",
    "clauses/rocketmq",
    "parameters/rocketmq",
    "statemachines/rocketmq",
)


@cache
def _sample() -> tuple[Edit, ...]:
    every = edits(SPEC)
    return tuple(every if SAMPLE is None else every[:: max(1, len(every) // SAMPLE)])


def _reduced(target: Path, file: Path, text: str | None = None) -> dict[str, SpecNode]:
    """The family with nothing but its messages, rules, clauses, parameters and machines, one file edited."""
    for name in NEEDED:
        shutil.copytree(SPEC / name, target / name)
    for name in ("adapter", "kafka", "raft", "trace", "zookeeper"):
        shutil.rmtree(target / "proto" / "replispec" / name)
    (target / "families").mkdir()
    shutil.copy(SPEC / "families" / "rocketmq.yaml", target / "families")
    place = target / file.relative_to(SPEC)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(file.read_text("utf-8") if text is None else text, "utf-8")
    return read_specification(target)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, SpecNode]:
    """The family as it is, for each file that is edited."""
    files = {edit.path for edit in _sample()}
    return {file: _reduced(tmp_path_factory.mktemp("before"), file)["rocketmq"] for file in sorted(files)}


@pytest.mark.parametrize("edit", _sample(), ids=lambda edit: edit.name)
def test_an_edit_of_the_lab_is_not_only_words(
    edit: Edit, before: dict[Path, SpecNode], tmp_path: Path
) -> None:
    try:
        after = _reduced(tmp_path, edit.path, edit.text)["rocketmq"]
    except SpecificationError:
        return  # the compiler notices it before any comparison
    found = changes(before[edit.path], after)
    assert [change.kind for change in found if change.kind is not Reach.WORDS] != []
