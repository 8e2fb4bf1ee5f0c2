"""The report as one HTML file that needs nothing else: no network, no script, light and dark."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jinja2

from replispec.replay.report.evidence import frames_filter
from replispec.replay.report.failover import anatomy
from replispec.replay.report.headline import headline
from replispec.replay.report.model import (
    Overlap,
    ReportEvidence,
    ReportFinding,
    ReportModel,
    Switch,
    Timeline,
    Verdict,
)
from replispec.replay.report.offsets import chart
from replispec.replay.report.timeline import described, draw
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
)
from replispec.runtime.primitives.visible import visible

T = TypeVar("T", Switch, Overlap)
# Longer texts come from a peer that writes novels into a name; the Parquet files hold them whole.
TEXT_CHARACTERS_MAXIMUM = 600
LAGS_MAXIMUM = 50
FAILOVERS_MAXIMUM = 50
LOSSES_MAXIMUM = 100
FILTERS_MAXIMUM = 3
OVERLAPS_MAXIMUM = 100


def write_report(model: ReportModel, path: Path) -> None:
    """Write the page to `path`, as UTF-8. The same model gives the same bytes. Raises OSError."""
    path.write_bytes(render(model).encode())


def render(model: ReportModel) -> str:
    """The page as text."""
    starts = {each.file: each.first_time_ns for each in model.captures if each.first_time_ns is not None}
    worst_first = sorted(Verdict, key=lambda verdict: -verdict.rank)
    pictures = [
        draw(timeline, _own(model.switches, timeline), _own(model.overlaps, timeline))
        for timeline in model.timelines
    ]
    causes = {(each.group, each.file, each.epoch): each for each in model.causes}
    findings = sorted(model.findings, key=lambda finding: -finding.verdict.rank)
    return _template().render(
        model=model,
        headline=headline(model),
        losses=[
            (loss, causes.get((loss.group, loss.file, loss.epoch))) for loss in model.losses[:LOSSES_MAXIMUM]
        ],
        lost_total=sum(each.count for each in model.lost_counts),
        overlaps=model.overlaps[:OVERLAPS_MAXIMUM],
        verdicts=[(verdict, MEANING[verdict], _number(findings, verdict)) for verdict in worst_first],
        starts=starts,
        switches=[(each, switch_sentence(each, starts.get(each.file, 0))) for each in model.switches],
        pictures=[
            (picture, chart(timeline, picture), timeline.lags[:LAGS_MAXIMUM])
            for timeline, picture in zip(model.timelines, pictures, strict=True)
        ],
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
    }
    return environment.get_template("page.html")


def _own(told: Iterable[T], timeline: Timeline) -> list[T]:
    """What is about the group and file of a timeline."""
    return [each for each in told if (each.group, each.file) == (timeline.group, timeline.file)]


def _frame_filter(evidence: Sequence[ReportEvidence]) -> str:
    return frames_filter(each.number for each in evidence if each.number is not None)


def _follow_filters(evidence: Sequence[ReportEvidence]) -> list[str]:
    return list(dict.fromkeys(each.follow for each in evidence if each.follow))[:FILTERS_MAXIMUM]


def _or_dash(value: object) -> object:
    return "-" if value is None else value


def _number(findings: list[ReportFinding], verdict: Verdict) -> int:
    return sum(finding.verdict is verdict for finding in findings)


def _visible(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value, TEXT_CHARACTERS_MAXIMUM)
    return value
