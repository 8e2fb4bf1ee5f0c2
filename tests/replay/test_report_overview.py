"""Many groups on one page: the broken ones come first, each rule says what it is, all can be checked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.report.headline import headline
from replispec.replay.report.lives import SOUND_MAXIMUM, TIMELINES_MAXIMUM
from replispec.replay.report.model import (
    Loss,
    MasterBand,
    ReportFinding,
    ReportModel,
    Timeline,
    TimelineEvent,
    TimelineEventKind,
    Verdict,
)
from replispec.replay.report.overview import STRIP_WIDTH, overview
from replispec.replay.report.page import render
from replispec.replay.report.provenance import specification_digest
from tests.house.tree import ROOT
from tests.replay.outline import Outline

SECOND = 10**9
START = 1_795_206_775 * SECOND
CAPTURES = ROOT / "spark_replay" / "captures"
RULE = "offset-chain"


def _many(groups: int, broken: tuple[int, ...] = (), doubtful: tuple[int, ...] = ()) -> ReportModel:
    """So many groups of one file, of which some broke a rule or could not be judged."""
    names = [f"G/{number:03}" for number in range(groups)]
    verdicts = {**dict.fromkeys(broken, Verdict.VIOLATED), **dict.fromkeys(doubtful, Verdict.UNKNOWN)}
    band = (MasterBand(START, None, "broker 1", 1),)
    return ReportModel(
        "local",
        (),
        findings=tuple(
            ReportFinding(RULE, verdicts.get(number, Verdict.OK), name, "f", 3, unknown=2)
            for number, name in enumerate(names)
        ),
        timelines=tuple(Timeline(name, "f", START, START + 60 * SECOND, band) for name in names),
    )


def test_a_headline_of_many_groups_shows_some_lines_and_folds_the_others() -> None:
    def told(groups: int) -> ReportModel:
        losses = tuple(Loss(f"G/{number:03}", 1, 0, 9, 2, "f") for number in range(groups))
        return replace(_many(groups), losses=losses)

    assert len(headline(told(11)).first) == 11
    many = headline(told(40))
    assert [*many.first, *many.others] == [*many.lines]
    assert len(many.first) == 10
    page = render(told(40))
    assert f"and {len(many.others)} more lines" in page
    assert all(line in page for line in many.lines)
    assert "more line" not in render(told(3)).partition("</section>")[0]


def test_losses_come_first_then_broken_rules_then_what_could_not_be_judged() -> None:
    losses = (Loss("G/005", 1, 0, 9, 7, "f"), Loss("G/001", 1, 0, 9, 12, "f"))
    lossy = replace(_many(6, broken=(4,), doubtful=(2,)), losses=losses)
    assert [row.group for row in overview(lossy)] == [
        "G/001", "G/005", "G/004", "G/002", "G/000", "G/003",
    ]  # fmt: skip
    assert [row.lost for row in overview(lossy)][:3] == [12, 7, 0]


def test_three_hundred_groups_are_one_table_that_leads_to_each_broken_one() -> None:
    page = render(_many(300, broken=(7, 211)))
    outline = Outline(page)
    anchors = {value for _, name, value in outline.attributes if name == "id"}
    links = {value for tag, name, value in outline.attributes if (tag, name) == ("a", "href")}
    assert {link.removeprefix("#") for link in links} <= anchors
    text = " ".join(outline.text.split())
    table = text[text.rindex("masters over time") :]
    assert table.index("G/007") < table.index("G/211") < table.index("G/000")
    assert f"{SOUND_MAXIMUM} groups in which nothing is wrong" in text
    assert f"{300 - 2 - SOUND_MAXIMUM} timelines not drawn" in text
    unfolded = page[page.index('id="timelines"') : page.index("groups in which nothing is wrong")]
    assert unfolded.count("<figure") == 2


def test_no_more_timelines_are_drawn_than_a_browser_can_take() -> None:
    page = render(_many(TIMELINES_MAXIMUM + 5, broken=tuple(range(TIMELINES_MAXIMUM + 5))))
    assert page.count("<figure") == TIMELINES_MAXIMUM
    assert "5 timelines not drawn" in page


def test_a_single_group_needs_no_table_of_groups() -> None:
    assert 'id="groups"' not in render(_many(1))
    assert 'id="groups"' in render(_many(2))


def test_a_strip_shows_who_was_master_and_where_it_hurt() -> None:
    life = Timeline(
        "G/a",
        "f",
        START,
        START + 100 * SECOND,
        (MasterBand(START, START + 50 * SECOND, "a", 1), MasterBand(START + 50 * SECOND, None, "b", 2)),
        (TimelineEvent(START + 25 * SECOND, TimelineEventKind.LOSS, "lost"),),
    )
    (row,) = overview(ReportModel("local", (), timelines=(life,)))
    assert [(part.kind, part.x, part.width) for part in row.strip] == [
        ("master", 0.0, STRIP_WIDTH / 2),
        ("master", STRIP_WIDTH / 2, STRIP_WIDTH / 2),
        ("loss", STRIP_WIDTH / 4, 3.0),
    ]
    assert [part.shade for part in row.strip[:2]] == [0, 1]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("replayed")
    options = Options(command="replispec replay hung_master.pcap --out 'my result'")
    replay([CAPTURES / "hung_master.pcap"], out, EngineName.LOCAL, options)
    return out


def _text(out: Path) -> str:
    return " ".join(Outline((out / "report.html").read_text()).text.split())


def test_every_rule_is_told_as_a_sentence(replayed: Path) -> None:
    text = _text(replayed)
    assert "Within a broker set a masterEpoch names one master, whoever says so." in text
    rules = {each["invariant"] for each in json.loads((replayed / SUMMARY_NAME).read_text())["findings"]}
    page = (replayed / "report.html").read_text()
    assert page.count('<div class="about">') == len(rules)
    assert '<div class="about"></div>' not in page


def test_a_rule_that_was_not_judged_says_what_would_let_it_be(replayed: Path) -> None:
    text = _text(replayed)
    assert "It judges a change of the leader, which takes two controllers: none was captured." in text
    assert "Say --all-ack-in-sync-state-set if the brokers run with that setting." in text
    assert "Say --learner ID if a broker is a learner." in text


def test_rules_that_had_nothing_to_judge_are_no_unknown_findings(replayed: Path) -> None:
    assert "0unknown the capture does not hold what a judgement needs; 4 more had nothing" in _text(replayed)


def test_the_page_says_what_it_was_made_from(replayed: Path) -> None:
    text = _text(replayed)
    digest = hashlib.sha256((CAPTURES / "hung_master.pcap").read_bytes()).hexdigest()
    assert f"hung_master.pcap {(CAPTURES / 'hung_master.pcap').stat().st_size} {digest}" in text
    assert f"specification {specification_digest()}" in text
    assert "replispec replay hung_master.pcap --out 'my result'" in text
    provenance = json.loads((replayed / SUMMARY_NAME).read_text())["provenance"]
    assert provenance["inputs"][0]["sha256"] == digest
    assert "2026-11-21 01:11:55.077 UTC to" in text
