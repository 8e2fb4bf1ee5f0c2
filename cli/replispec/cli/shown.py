"""What a command found out, in the forms that can be asked for: text, a table, JSON, YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from replispec.runtime.primitives.visible import visible

TEXT, TABLE, JSON, YAML = FORMATS = ("text", "table", "json", "yaml")
Row = Mapping[str, object]
_GAP: Final = "  "


@dataclass(frozen=True, slots=True)
class Display:
    """The same as `text`, and as rows: one mapping for each thing that it is about, with the same keys in the
    same order. `code`: what the command ends with; `faults`: lines for standard error."""

    text: str
    rows: Sequence[Row] = ()
    code: int = 0
    faults: Sequence[str] = field(default_factory=tuple)


form_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=TEXT,
    show_default=True,
    help="Text for people, the others for programs.",
)


def with_formats(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every command has which shows something, and shows it again."""
    watch = click.option(
        "-i",
        "--interval",
        "--watch",
        "interval",
        metavar="SECONDS",
        type=click.FloatRange(0.1),
        help="Ask again after so many seconds, until interrupted.",
    )
    shown: Callable[..., Any] = form_option(watch(command))
    return shown


def show(look: Callable[[], Display], form: str, interval: float | None) -> int:
    """Print what `look` finds, again and again where there is an interval; the exit code of the last look."""
    from replispec.runtime.net.visit_shell import pause

    while True:
        found = look()
        for line in found.faults:
            click.echo(f"replispec: {visible(line, len(line))}", err=True)
        click.echo(written(found, form), nl=False)
        if interval is None:
            return found.code
        pause(interval)


def written(found: Display, form: str) -> str:
    """The text of one form, its last line ended."""
    if form == JSON:
        return json.dumps(list(found.rows), indent=2) + "\n"
    if form == YAML:
        return _yaml(found.rows)
    return _table(found.rows) if form == TABLE else found.text


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in lines
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(_cell, value)) or "-"
    text = str(value)
    return visible(text, len(text))


def _yaml(rows: Sequence[Row]) -> str:
    return "".join(_yaml_lines(rows)) or "[]\n"


def _yaml_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Values as JSON writes them, which YAML reads."""
    for row in rows:
        for number, (name, value) in enumerate(row.items()):
            yield f"{'- ' if not number else '  '}{name}: {json.dumps(value)}\n"
