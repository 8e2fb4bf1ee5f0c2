"""A command whose JUnit is written, too, when its command line is wrong: whoever reads it has to hear why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class JUnitCommand(click.Command):
    """A command with the options `--kind` and `--junit`, as `kind` and `junit_file`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """As every command does; what is wrong stands in the file before it is told."""
        given = list(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as fault:
            self._tell(given, parent, fault.format_message())
            raise

    def _tell(self, args: list[str], parent: click.Context | None, why: str) -> None:
        from replispec.conformance.families import kinds
        from replispec.conformance.report_junit import nothing_judged

        given = self._given(args, parent)
        report = given.get("junit_file")
        if isinstance(report, str) and _may_be_written(Path(report)):
            kind = next((each for each in kinds() if each == given.get("kind")), "conformance")
            Path(report).write_bytes(nothing_judged(kind, why))

    def _given(self, args: list[str], parent: click.Context | None) -> dict[str, Any]:
        """The options as they stand in the line; none when not even that can be said."""
        context = click.Context(self, parent=parent, ignore_unknown_options=True, resilient_parsing=True)
        try:
            return self.make_parser(context).parse_args(args)[0]
        except click.UsageError:
            return {}


def _may_be_written(report: Path) -> bool:
    return report.absolute().parent.is_dir() and not report.is_dir()
