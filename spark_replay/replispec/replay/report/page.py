"""The report as one HTML file that needs nothing else: no network, no script, light and dark."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from replispec.replay.report.evidence import frames_filter
from replispec.replay.report.failover import anatomy
from replispec.replay.report.family import in_short
from replispec.replay.report.headline import headline
from replispec.replay.report.lives import drawn_lives
from replispec.replay.report.model import (
    ReportEvidence,
    ReportFinding,
    ReportModel,
    Verdict,
)
from replispec.replay.report.overview import STRIP_HEIGHT, STRIP_WIDTH, overview
from replispec.replay.report.timeline import described
from replispec.replay.report.wording import (
    MEANING,
    clock,
    counted,
    exact_seconds,
    failover_sentence,
    lag_sentence,
    loss_line,
    milliseconds,
    overlap_sentence,
    seconds,
    switch_sentence,
    utc,
)
from replispec.runtime.primitives.visible import visible

# Longer texts come from a peer that writes novels into a name; the Parquet files hold them whole.
TEXT_CHARACTERS_MAXIMUM = 600
FAILOVERS_MAXIMUM = 50
LOSSES_MAXIMUM = 100
SWITCHES_MAXIMUM = 200
FILTERS_MAXIMUM = 3
OVERLAPS_MAXIMUM = 100


def write_report(model: ReportModel, path: Path) -> None:
    """Write the page to `path`, as UTF-8. The same model gives the same bytes. Raises OSError."""
    path.write_bytes(render(model).encode())


def render(model: ReportModel) -> str:
    """The page as text."""
    starts = {each.file: each.first_time_ns for each in model.captures if each.first_time_ns is not None}
    worst_first = sorted(Verdict, key=lambda verdict: -verdict.rank)
    groups = overview(model)
    lives = drawn_lives(model, groups)
    causes = {(each.group, each.file, each.epoch): each for each in model.causes}
    switches = sorted(model.switches, key=lambda each: each.time_ns)[:SWITCHES_MAXIMUM]
    findings = sorted(model.findings, key=lambda finding: -finding.verdict.rank)
    short = in_short(model.findings)
    return _template().render(
        model=model,
        headline=headline(model),
        losses=[
            (loss, causes.get((loss.group, loss.file, loss.epoch))) for loss in model.losses[:LOSSES_MAXIMUM]
        ],
        lost_total=sum(each.count for each in model.lost_counts),
        overlaps=model.overlaps[:OVERLAPS_MAXIMUM],
        verdicts=[_tile(findings, verdict) for verdict in worst_first],
        starts=starts,
        switches=[(each, switch_sentence(each, starts.get(each.file, 0))) for each in switches],
        switches_left_out=len(model.switches) - len(switches),
        anchors={(row.group, row.file): row.anchor for row in groups},
        groups=groups,
        in_short=short,
        drawn={life.anchor for life in lives},
        span=_span(model),
        sections=_sections(model, several=len(groups) > 1, lives=bool(lives), short=bool(short)),
        strip=(STRIP_WIDTH, STRIP_HEIGHT),
        lives=[life for life in lives if not life.folded],
        folded=[life for life in lives if life.folded],
        lives_left_out=len(model.timelines) - len(lives),
        anatomies=[anatomy(each) for each in model.failovers[:FAILOVERS_MAXIMUM] if each.moments],
        failovers_left_out=max(len(model.failovers) - FAILOVERS_MAXIMUM, 0),
        noteworthy=[each for each in findings if each.verdict is not Verdict.OK and not each.idle],
        idle=[each for each in findings if each.idle],
        fine=[finding for finding in findings if finding.verdict is Verdict.OK],
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("replispec.replay.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters |= {
        "clock": clock,
        "counted": counted,
        "described": described,
        "exact_seconds": exact_seconds,
        "failover_sentence": failover_sentence,
        "follow_filters": _follow_filters,
        "frame_filter": _frame_filter,
        "lag_sentence": lag_sentence,
        "loss_line": loss_line,
        "milliseconds": milliseconds,
        "or_dash": _or_dash,
        "overlap_sentence": overlap_sentence,
        "seconds": seconds,
        "utc": utc,
    }
    return environment.get_template("page.html")


def _span(model: ReportModel) -> tuple[int, int] | None:
    """The times of the first and the last packet of all captures."""
    firsts = [each.first_time_ns for each in model.captures if each.first_time_ns is not None]
    lasts = [each.last_time_ns for each in model.captures if each.last_time_ns is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def _sections(model: ReportModel, *, several: bool, lives: bool, short: bool) -> list[tuple[str, str]]:
    """What the page has: the anchor and the name of each section, in their order."""
    there = {
        "comparison": ("Comparison", model.comparison is not None),
        "losses": ("Lost messages", bool(model.losses)),
        "groups": ("Groups", several),
        "in-short": ("In short", short),
        "switches": ("Masters", True),
        "timelines": ("Timelines", lives),
        "failovers": ("Fail-overs", any(each.moments for each in model.failovers)),
        "findings": ("Findings", True),
        "answers": ("Answers", bool(model.answers)),
        "latencies": ("Request latency", bool(model.latencies)),
        "captures": ("Captures", True),
    }
    return [(anchor, name) for anchor, (name, shown) in there.items() if shown]


def _frame_filter(evidence: Sequence[ReportEvidence]) -> str:
    return frames_filter(each.number for each in evidence if each.number is not None)


def _follow_filters(evidence: Sequence[ReportEvidence]) -> list[str]:
    return list(dict.fromkeys(each.follow for each in evidence if each.follow))[:FILTERS_MAXIMUM]


def _or_dash(value: object) -> object:
    return "-" if value is None else value


def _tile(findings: list[ReportFinding], verdict: Verdict) -> tuple[Verdict, str, int]:
    """A verdict, what it means, and how many findings have it; what had nothing to judge is told apart."""
    own = [finding for finding in findings if finding.verdict is verdict]
    idle = sum(finding.idle for finding in own)
    more = f"; {idle:,} more had nothing to judge" if idle else ""
    return verdict, MEANING[verdict] + more, len(own) - idle


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value, TEXT_CHARACTERS_MAXIMUM)
    return value
