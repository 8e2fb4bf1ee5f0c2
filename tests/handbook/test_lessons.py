"""A teaching page says what the machine does, or is not made."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from replispec.handbook.lessons import LessonError, played
from replispec.handbook.places import edge_rows
from replispec.wire.rocketmq.vectors import RULES
from tests.handbook.shared import ROOT, all_known, neighbours, places

TEACHING = sorted((ROOT / "docs" / "teaching").glob("*.md"))
TRUNCATIONS = "docs/teaching/rip-44-six-truncations"
BLOCK = re.compile(r"```yaml play\n(.*?)```\n", re.DOTALL)
LESSON = """
```yaml play
machine: rocketmq/ha_replica
begin: {state: HANDSHAKE, variables: {log_end: 1000, epochs: [{epoch: 0, start_offset: 0}]}}
steps:
  - event: handshake_answered
    given: {entries: [{epoch: 0, start_offset: 0}, {epoch: 1, start_offset: 900}], max_offset: 1200}
    says: It cuts.
    state: TRANSFER
    becomes: {log_end: 900, silent: true}
    does: [truncate_log, correct_epochs, send_report]
```
"""


def test_a_lesson_shows_each_step_with_the_clauses_of_the_edge_that_was_taken() -> None:
    text = played(LESSON, "a page", places())
    (line,) = (line for line in text.split("\n") if line.startswith("| 1 |"))
    assert "[RIP44-TRUNC-1](ref:rocketmq/clauses/RIP44-TRUNC-1)" in line
    (edge,) = re.findall(r"\[`TRANSFER`\]\(ref:rocketmq/machines/ha_replica#([a-z0-9-]+)\)", line)
    rows = {row.anchor: row for row in edge_rows(all_known()["rocketmq"].spec.machines["ha_replica"])[0]}
    assert (rows[edge].state, rows[edge].event) == ("HANDSHAKE", "handshake_answered")
    taken = rows[edge].edge
    assert taken is not None
    assert "RIP44-TRUNC-1" in taken.clauses
    assert "`log_end` 900" in line
    assert "yaml play" not in text


SENDS = """
```yaml play
machine: rocketmq/ha_replica
begin: {state: TRANSFER, variables: {log_end: 1000, epochs: [{epoch: 0, start_offset: 0}], silent: SILENT}}
steps:
  - event: report_sent
    given: {max_offset: 1000}
    state: TRANSFER
    becomes: BECOMES
```
"""


def test_a_step_leads_to_the_line_of_its_own_edge_beside_one_that_does_the_same() -> None:
    found = []
    for silent, becomes in (("true", "{silent: false}"), ("false", "{}")):
        text = played(SENDS.replace("SILENT", silent).replace("BECOMES", becomes), "a page", places())
        found += re.findall(r"ha_replica#([a-z0-9-]+)", text)
    rows = {row.anchor: row.edge for row in edge_rows(all_known()["rocketmq"].spec.machines["ha_replica"])[0]}
    quiet, spoken = (rows[anchor] for anchor in found)
    assert quiet is not None
    assert spoken is not None
    assert (quiet.condition is None, spoken.condition is None) == (False, True)


@pytest.mark.parametrize(
    "written",
    [
        LESSON.rstrip("\n"),
        LESSON.replace("yaml play\n", "yaml play \n"),
        LESSON.replace("yaml play", " yaml  play"),
        LESSON.replace("```", "~~~"),
        LESSON.rstrip("\n") + " \n\nmore\n\n```\nno lesson\n```\n",
    ],
)
def test_a_block_is_played_however_its_fence_is_written(written: str) -> None:
    assert "yaml" not in played(written, "a page", places())
    false = written.replace("state: TRANSFER", "state: READY")
    with pytest.raises(LessonError, match="block 1, step 1: the page says state 'READY'"):
        played(false, "a page", places())


@pytest.mark.parametrize(
    "written", [LESSON.replace("\n```\n", "\n"), LESSON.replace("```yaml", "  ```yaml"), "````yaml play\nx\n"]
)
def test_what_looks_like_a_block_and_is_none_is_refused(written: str) -> None:
    with pytest.raises(LessonError, match="begins no block"):
        played(written, "a page", places())


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("variables: {log_end: 1000, epochs: [{epoch: 0, start_offset: 0}]}", "variables:"),
        ("variables: {log_end: 1000, epochs: [{epoch: 0, start_offset: 0}]}", "variables: [log_end]"),
        ("epochs: [{epoch: 0, start_offset: 0}]}", "epochs: 3}"),
        ("epochs: [{epoch: 0, start_offset: 0}]}", "epochs: [3]}"),
        ("log_end: 1000", "log_end: '1000'"),
        ("does: [truncate_log, correct_epochs, send_report]", "does:"),
        ("state: TRANSFER", "state: [TRANSFER]"),
        ("state: HANDSHAKE", "state: [HANDSHAKE]"),
        ("begin: {", "begin: {wrong: 1, "),
        ("steps:\n", "wrong: 3\nsteps:\n"),
    ],
)
def test_a_block_of_another_form_is_refused_by_its_place(said: str, instead: str) -> None:
    assert LESSON.count(said) >= 1
    with pytest.raises(LessonError, match=r"^a page, block 1"):
        played(LESSON.replace(said, instead), "a page", places())


@pytest.mark.parametrize(
    ("said", "instead", "complaint"),
    [
        ("state: TRANSFER", "state: READY", "the page says state 'READY', the machine 'TRANSFER'"),
        ("log_end: 900,", "log_end: 901,", "the page says becomes"),
        ("log_end: 900, ", "", "the page says becomes"),
        ("truncate_log, ", "", "the page says does"),
        ("start_offset: 900", "start_offset: 950", "the page says becomes"),
        ("event: handshake_answered", "event: handshaken", "has no event 'handshaken'"),
        ("event: handshake_answered", "event: stop", "there is no entries, max_offset"),
        ("state: HANDSHAKE", "state: READY", "no edge from READY on handshake_answered"),
        ("state: HANDSHAKE", "state: ELSEWHERE", "there is no state ELSEWHERE"),
        ("max_offset:", "maximum:", "there is no maximum"),
        ("variables: {log_end", "variables: {end", "there is no end"),
        ("ha_replica", "ha_slave", "no machine 'rocketmq/ha_slave'"),
        ("says:", "tells:", "unknown tells"),
        ("steps:", "stops:", "not a block of machine, begin and steps"),
    ],
)
def test_a_lesson_that_says_something_else_is_refused(said: str, instead: str, complaint: str) -> None:
    assert said in LESSON
    with pytest.raises(LessonError, match=re.escape(complaint)) as refusal:
        played(LESSON.replace(said, instead, 1), "a page", places())
    assert str(refusal.value).startswith("a page, block 1")


def test_an_event_whose_fields_make_it_another_is_refused() -> None:
    lesson = LESSON.replace("state: HANDSHAKE", "state: TRANSFER").replace(
        "handshake_answered", "batch_received"
    )
    given = re.compile(r"given: .*")
    with pytest.raises(LessonError, match="it is not a batch_received"):
        played(given.sub("given: {offset: 1000, body_size: 0}", lesson), "a page", places())


@pytest.mark.parametrize("path", TEACHING, ids=lambda path: path.stem)
def test_every_teaching_page_is_played(path: Any) -> None:
    assert len(BLOCK.findall(path.read_text("utf-8"))) >= 2
    assert "| 1 | **" in played(path.read_text("utf-8"), path.name, places())


def test_the_lesson_of_truncations_plays_the_golden_vectors_of_all_six_examples() -> None:
    blocks = [yaml.safe_load(each) for each in BLOCK.findall((ROOT / f"{TRUNCATIONS}.md").read_text("utf-8"))]
    told = []
    for block in blocks:
        begin, first = block["begin"].get("variables", {}), block["steps"][0]
        told.append(
            (
                begin.get("epochs", []),
                begin.get("log_end", 0),
                first["given"]["entries"],
                first["given"]["max_offset"],
                first.get("becomes", {}).get("log_end", begin.get("log_end", 0)),
            )
        )
    vectors = [each for each in RULES["consistent_point"]["vectors"] if each["name"].startswith("RIP-44")]
    assert {each["name"].split()[2].rstrip(",") for each in vectors} == {"1", "2", "3", "4", "5", "6"}
    for each in vectors:
        given = each["given"]
        ends = min(each["result"], given["our_end"])
        assert (given["ours"], given["our_end"], given["theirs"], given["their_end"], ends) in told


def test_each_clause_about_truncation_that_an_edge_follows_is_taught() -> None:
    known = all_known()["rocketmq"]
    about = {
        clause
        for clause, uses in known.uses.items()
        if clause.startswith("RIP44-TRUNC-") and any(use.startswith("edge ") for use in uses)
    }
    assert len(about) == 6
    assert {f"rocketmq/clauses/{each}" for each in about} <= neighbours()[TRUNCATIONS]
