"""`replispec conformance`: judge any implementation by its bytes, clause by clause."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replispec.cli.failures import complain
from replispec.cli.finite import Finite
from replispec.cli.junit_command import JUnitCommand
from replispec.cli.output import GONE, drop_output
from replispec.cli.progress import counting
from replispec.cli.stopping import SIGNALLED, interrupted_by_signals

if TYPE_CHECKING:
    from replispec.conformance.defects import Defect
    from replispec.conformance.model import Case
    from replispec.conformance.results import RunResult

EXIT_FINDINGS = 1
EXIT_NOTHING_JUDGED = 2
EXIT_ADAPTER = 3
EXIT_INTERRUPTED = 130
EXAMPLES = """\b
Examples:
  replispec conformance run --kind controller --target 127.0.0.1:9878
  replispec conformance run --kind controller --target 127.0.0.1:9878 --case '*/alter/*' --trace
  replispec conformance run --kind ha-master --target 127.0.0.1:10912 --controller 127.0.0.1:9878
  replispec conformance run --kind controller --adapter 'replispec adapter'
  replispec conformance explain RIP44-ALTER-1
"""
EXPLAIN_EXAMPLES = """\b
Examples:
  replispec conformance explain RIP44-ALTER-1                      a clause: its source, and all its cases
  replispec conformance explain controller/alter/RIP44-ALTER-2/4   a case: what is sent, what may come
  replispec conformance explain B9                                 a known defect: its report, its cases
"""
LIST_EXAMPLES = """\b
Examples:
  replispec conformance list --kind controller | grep must
  replispec conformance list --cases mine
"""
COMPLIANCE_EXAMPLES = """\b
Examples:
  replispec conformance run --kind controller --target 127.0.0.1:9878 --json mine.json
  replispec conformance compliance --out compliance.md mine.json theirs.json
"""
VECTORS_EXAMPLES = """\b
Examples:
  replispec conformance vectors --out vectors       vectors/FAMILY/frames.json, machines.json, rules.json
"""


class _Report(click.Path):
    """A file that is written after a run: a place where that cannot be is refused before it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"there is no folder {path.parent}.", param, ctx)
        return path


FILE = _Report()
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
PORT = "HOST:PORT"


class _Kind(click.ParamType[str]):
    """A kind of subject; the families are asked only when one is named or shown."""

    name = "kind"

    def get_metavar(self, *_: object, **__: object) -> str:
        return f"[{'|'.join(_kinds())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _kinds():
            self.fail(f"{value!r} is not one of {', '.join(map(repr, _kinds()))}.", param, ctx)
        return value


def _kinds() -> list[str]:
    from replispec.conformance.families import kinds

    return list(kinds())


class _Command(click.ParamType[tuple[str, ...]]):
    """A program with its arguments, in one word of the shell."""

    name = "command"

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        try:
            words = shlex.split(value) if isinstance(value, str) else list(value)
        except ValueError as fault:
            self.fail(f"{value!r}: {fault}", param, ctx)
        if not words:
            self.fail("a program is expected", param, ctx)
        return tuple(words)


KIND = _Kind()


@click.group(
    epilog=EXAMPLES, no_args_is_help=True, short_help="Judge what runs by its bytes, clause by clause."
)
def conformance() -> None:
    """Judge a controller or an HA master of any implementation on nothing but its bytes.

    The suite connects to what already runs, or has it started by an adapter (docs/adapter-protocol.md).
    Every case names the clause that it tries, and every failure comes with the bytes that were exchanged.

    Exit codes: 0 everything as it should be, 1 findings, 2 nothing could be judged, 3 the adapter broke its
    protocol or ended, 130 interrupted, 143 ended by SIGTERM: what was judged before is told and written.
    """


def _subject(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say what the subject is and where."""
    for option in (
        click.option(
            "--release", metavar="X.Y.Z", help="Release of the protocol that it speaks.  [default: newest]"
        ),
        click.option("--implementation", default="", metavar="NAME", help="Whose known failures count."),
        click.option("--broker-set", metavar="NAME", help="ha-master: the name of its broker set."),
        click.option("--broker", metavar=PORT, help="ha-master: its port for clients."),
        click.option("--controller", metavar=PORT, help="ha-master: the controller that elected it."),
        click.option("--metastore", metavar=PORT, help="Of brokers that have one: where it listens."),
        click.option(
            "--adapter",
            type=_Command(),
            metavar="COMMAND",
            help="The program that starts it, with its arguments, instead of --target.",
        ),
        click.option("--target", metavar=PORT, help="Where it listens; ha-master: its HA port."),
        click.option("--kind", type=KIND, required=True, help="What the subject is."),
    ):
        command = option(command)
    return command


def _choice(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say which cases are played, and how."""
    for option in (
        click.option("--cases", "folder", type=FOLDER, help="Other cases than the shipped ones."),
        click.option("--add-cases", "added", type=FOLDER, help="Cases beside the shipped ones."),
        click.option(
            "--patience",
            type=Finite(0.05, 20),
            default=1.0,
            show_default=True,
            help="Times every wait.",
        ),
        click.option(
            "--jobs", type=click.IntRange(1, 64), default=8, show_default=True, help="Cases at a time."
        ),
        click.option(
            "--seed",
            help="Makes names and ids. A subject has to be reset before it hears the same seed again.",
        ),
        click.option("--strict", is_flag=True, help="Failed recommendations count as findings too."),
        click.option(
            "--case",
            "patterns",
            multiple=True,
            metavar="PATTERN",
            help="Only cases whose id fits, as '*/alter/*'.",
        ),
        click.option(
            "--basis",
            "bases",
            multiple=True,
            metavar="BASIS",
            help="Only what rests on this: proposal, an observed implementation's name, ours.",
        ),
        click.option("--profile", "profiles", multiple=True, help="Only this part: core, admin, ha."),
    ):
        command = option(command)
    return command


def _reports(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say what is shown and written."""
    for option in (
        click.option("--html", "html_file", type=FILE, help="Write one self-contained page."),
        click.option("--junit", "junit_file", type=FILE, help="Write JUnit XML."),
        click.option("--json", "json_file", type=FILE, help="Write all results, traces included."),
        click.option("--trace", is_flag=True, help="Show the bytes of every case that was played."),
    ):
        command = option(command)
    return command


@conformance.command(
    cls=JUnitCommand, epilog=EXAMPLES, short_help="Play the cases of a kind against a subject."
)
@_subject
@_choice
@_reports
def run(
    kind: str,
    target: str | None,
    adapter: tuple[str, ...] | None,
    controller: str | None,
    broker: str | None,
    metastore: str | None,
    broker_set: str | None,
    implementation: str,
    release: str | None,
    profiles: tuple[str, ...],
    patterns: tuple[str, ...],
    bases: tuple[str, ...],
    strict: bool,
    seed: str | None,
    jobs: int,
    patience: float,
    folder: Path | None,
    added: Path | None,
    trace: bool,
    json_file: Path | None,
    junit_file: Path | None,
    html_file: Path | None,
) -> int:
    """Play the cases of a kind against a subject, and say what it does not do."""
    from replispec.conformance.model import CaseError
    from replispec.conformance.planning import PlanError, cases_for, make_plan
    from replispec.conformance.probe import NoSubject
    from replispec.conformance.report_junit import nothing_judged
    from replispec.conformance.run import run_suite

    addresses = {"target": target, "controller": controller, "broker": broker, "metastore": metastore}
    try:
        plan = make_plan(
            kind,
            addresses,
            implementation=implementation,
            release=release,
            profiles=profiles,
            patterns=patterns,
            bases=bases,
            seed=seed,
            jobs=jobs,
            patience=patience,
            known={"set": broker_set},
            adapter=adapter or (),
            strict=strict,
        )
        cases, expected = cases_for(plan, folder, added)
        total = sum(map(plan.chooses, cases))
        with (
            counting(f"{kind} at {plan.target()}", total, tenths=True) as tell,
            interrupted_by_signals() as came,
        ):
            result = run_suite(plan, cases, expected, lambda case, done, total: tell(case.id, done, total))
    except (CaseError, NoSubject, PlanError) as fault:
        if junit_file is not None:
            with suppress(OSError):  # why nothing was judged is told all the same
                junit_file.write_bytes(nothing_judged(kind, str(fault)))
        raise click.ClickException(str(fault)) from None
    unwritten = list(_write(result, json_file, junit_file, html_file))
    _tell(result, trace=trace)
    for line in unwritten:
        complain(line)
    return _exit_code(result, came) or (EXIT_NOTHING_JUDGED if unwritten else 0)


def _exit_code(result: RunResult, came: list[int]) -> int:
    """What a run found; `came` are the signals that ended it."""
    if result.cut_short:
        return SIGNALLED + came[0] if came else EXIT_INTERRUPTED
    if result.adapter_fault:
        return EXIT_ADAPTER
    if not result.judged():
        return EXIT_NOTHING_JUDGED
    return EXIT_FINDINGS if result.findings() or result.stale else 0


def _tell(result: RunResult, *, trace: bool) -> None:
    """On standard output, as long as somebody reads it: what was found does not depend on that."""
    from replispec.cli.conformance_text import show_case, show_run

    try:
        for case in result.results if trace else ():
            show_case(case)
        show_run(result)
    except OSError as gone:
        if gone.errno not in GONE:
            raise
        drop_output()


def _write(result: RunResult, json: Path | None, junit: Path | None, html: Path | None) -> Iterator[str]:
    """Write the reports; a line for each that cannot be written, which keeps none of the others."""
    from replispec.conformance.report_html import html_page
    from replispec.conformance.report_junit import junit_xml
    from replispec.conformance.results import to_json

    reports: tuple[tuple[Path | None, Callable[[], bytes]], ...] = (
        (junit, lambda: junit_xml(result)),
        (json, lambda: to_json(result)),
        (html, lambda: html_page([result]).encode()),
    )
    for path, made in reports:
        if path is not None:
            try:
                path.write_bytes(made())
            except OSError as fault:
                yield f"{path}: {fault.strerror or fault}"


@conformance.command(epilog=EXPLAIN_EXAMPLES, short_help="Say what a case does or a clause demands.")
@click.argument("name", metavar="CASE|CLAUSE|DEFECT")
@click.option("--cases", "folder", type=FOLDER, help="Other cases than the shipped ones.")
def explain(name: str, folder: Path | None) -> int:
    """Say what a case does and allows, what a clause demands and what checks it, or what a defect is."""
    from replispec.conformance.explain import explain as explained
    from replispec.conformance.explain import nearest

    cases = all_cases(folder)
    lines = explained(name, cases, all_defects(folder))
    if lines is None:
        near = nearest(name, cases)
        hint = f"; is it one of: {', '.join(near)}" if near else "; `replispec conformance list` shows all"
        raise click.ClickException(f"no case, clause or defect is called {name!r}{hint}")
    click.echo("\n".join(lines))
    return 0


@conformance.command("list", epilog=LIST_EXAMPLES)
@click.option("--kind", "kinds", type=KIND, multiple=True, help="Only cases of this kind.")
@click.option("--cases", "folder", type=FOLDER, help="Other cases than the shipped ones.")
def list_cases(kinds: tuple[str, ...], folder: Path | None) -> int:
    """List every case: id, severity, basis, releases, requirement."""
    for case in all_cases(folder):
        if not kinds or case.kind in kinds:
            releases = str(case.releases).rpartition("@")[2]
            click.echo(f"{case.id}  {case.severity}, {case.basis}, {releases}: {case.requirement}")
    return 0


@conformance.command(epilog=COMPLIANCE_EXAMPLES, short_help="Make one page of the results of several runs.")
@click.argument(
    "results", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--out", type=FILE, help="Write the Markdown page here.  [default: standard output]")
@click.option("--html", "html_file", type=FILE, help="Write all runs as one self-contained page.")
@click.option(
    "--not-played",
    type=(str, str, str),
    multiple=True,
    metavar="KIND SUBJECT WHY",
    help="Who is missing, as a line of the Markdown page.",
)
def compliance(
    results: tuple[Path, ...],
    out: Path | None,
    html_file: Path | None,
    not_played: tuple[tuple[str, str, str], ...],
) -> int:
    """Make one page of the RESULTS of several runs (--json): clause by implementation, and all failures."""
    from replispec.conformance.compliance import compliance_page
    from replispec.conformance.coverage import coverage
    from replispec.conformance.report_html import html_page
    from replispec.conformance.results import ResultError, from_json

    try:
        runs = [from_json(path.read_bytes(), path.name) for path in results]
    except ResultError as fault:
        raise click.ClickException(str(fault)) from None
    page = compliance_page(runs, coverage(all_cases(None)), all_defects(None), not_played)
    if out is not None:
        out.write_text(page, encoding="utf-8")
    elif html_file is None:
        click.echo(page, nl=False)
    if html_file is not None:
        html_file.write_text(html_page(runs), encoding="utf-8")
    return 0


@conformance.command(
    epilog=VECTORS_EXAMPLES, short_help="Write the specification as JSON for other languages."
)
@click.option(
    "--out",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; it is made.",
)
def vectors(folder: Path) -> int:
    """Write the specification as JSON for tests in other languages: frames, machines, rules."""
    from replispec.conformance.vectors import write_vectors

    try:
        written = write_vectors(folder)
    except OSError as fault:
        raise click.ClickException(f"{fault.filename}: {fault.strerror}") from None
    click.echo("\n".join(f"{path}  {path.stat().st_size:,} bytes" for path in written))
    return 0


def all_cases(folder: Path | None) -> list[Case]:
    """The cases of every kind that the folder has."""
    from replispec.conformance.cases import cases_folder, load
    from replispec.conformance.families import kinds
    from replispec.conformance.model import CaseError

    try:
        return [
            case
            for kind, family in kinds().items()
            if ((folder or cases_folder(family.name)) / kind).is_dir()
            for case in load(kind, folder)
        ]
    except CaseError as fault:
        raise click.ClickException(str(fault)) from None


def all_defects(folder: Path | None) -> dict[str, Defect]:
    """The known defects of every family, or those of a folder of cases."""
    from replispec.conformance.cases import cases_folder
    from replispec.conformance.defects import load_defects
    from replispec.conformance.families import kinds
    from replispec.conformance.model import CaseError

    folders = (
        [folder] if folder else [cases_folder(name) for name in {each.name for each in kinds().values()}]
    )
    try:
        return {mark: each for one in folders for mark, each in load_defects(one).items()}
    except CaseError as fault:
        raise click.ClickException(str(fault)) from None
