"""The outcome of a replay for people, and as JSON for scripts."""

import io
from pathlib import Path

import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from replispec.replay.report.document import document
from replispec.replay.report.fill import Story, fill
from replispec.replay.report.headline import headline
from replispec.replay.report.model import ReportModel
from replispec.replay.report.summary import Summary
from replispec.replay.report.wording import applied, counted
from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.visible import visible

TEXT_CHARACTERS_MAXIMUM = 200
# Where no terminal tells its width.
WIDTH = 118
STYLES = {
    Verdict.VIOLATED: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.DIVERGED: "magenta",
    Verdict.OK: "green",
}
TONES = {"lost": "bold red", "kept": "bold green", "unjudged": "bold yellow"}


def summary_json(summary: Summary) -> bytes:
    """The content of summary.json."""
    return orjson.dumps(document(summary), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def summary_text(summary: Summary, report: Path, terminal: bool) -> str:
    """Losses first, then what is not ok, then the captures and where the report is."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=None if terminal else WIDTH)
    model = fill(summary, Story())
    said = headline(model)
    console.print(_shown(said.text, TONES[said.tone]))
    for line in said.first:
        console.print(_shown(f"  {line}"))
    if said.others:
        console.print(_shown(f"  and {counted(len(said.others), 'more line')}, which the report holds"))
    for sentence in _compared(model):
        console.print(_shown(sentence), soft_wrap=True)
    for part in (_findings(model), _captures(summary)):
        console.print()
        console.print(part)
    console.print()
    for line in _wire(model):
        console.print(_shown(line), soft_wrap=True)
    for line in applied(model):
        console.print(_shown(line), soft_wrap=True)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items())
    console.print(_shown(f"Verdicts: {counts}"))
    console.print(_shown(f"Report:   {report} (one file: open it in any browser)"), soft_wrap=True)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _compared(model: ReportModel) -> list[str]:
    """What differs from the older replay that was named, if one was."""
    if model.comparison is None:
        return []
    said = model.comparison
    lines = [*said.notes, *(said.lines or [said.all_the_same])]
    more = [f"and {said.left_out} more"] if said.left_out else []
    return ["", "Compared with the older replay:", *(f"  {line}" for line in (*lines, *more))]


def _findings(model: ReportModel) -> Table | Text:
    """What is not ok; a sentence when nothing is."""
    several = len(model.captures) > 1
    table = _table("not ok", "rule", "group", *(["capture"] if several else []))
    table.add_column("evaluated", justify="right")
    for finding in sorted(model.findings, key=lambda each: -each.verdict.rank):
        if finding.verdict is not Verdict.OK and not finding.idle:
            where = (finding.group, finding.file) if several else (finding.group,)
            table.add_row(
                Text(finding.verdict, STYLES[finding.verdict]),
                *map(_shown, (finding.invariant, *where, str(finding.evaluated))),
            )
    if table.row_count:
        return table
    if not any(finding.evaluated for finding in model.findings):
        return Text("No rule could be judged.", STYLES[Verdict.UNKNOWN])
    return Text("Every rule that could be judged held.", STYLES[Verdict.OK])


def _captures(summary: Summary) -> Table:
    table = _table("capture")
    for name in ("remoting", "HA frames", "undecoded", "foreign", "holes"):
        table.add_column(name, justify="right")
    for row in summary.captures:
        if row.error:
            table.add_row(_shown(row.file), _shown("unusable", STYLES[Verdict.VIOLATED]))
            continue
        figures = (row.frames_remoting, row.frames_ha, row.bytes_undecoded, row.bytes_foreign, row.holes)
        table.add_row(_shown(row.file), *(_shown(str(figure)) for figure in figures))
    return table


def _wire(model: ReportModel) -> list[str]:
    """What the packets of each capture are; the capture is named where there are several."""
    several = len(model.captures) > 1
    return [f"{each.file}: {line}" if several else line for each in model.captures for line in each.wire]


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _shown(text: str, style: str = "") -> Text:
    return Text(visible(text, TEXT_CHARACTERS_MAXIMUM), style)
