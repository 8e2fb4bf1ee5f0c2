"""`replispec watch`: captures that are still being written, judged while they grow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from replispec.cli import capture_options, engines
from replispec.cli.failures import EXIT_UNUSABLE, complain, describe
from replispec.cli.finite import Finite
from replispec.cli.listening import Listening, check, listening
from replispec.cli.output import ReaderGone, standard_output
from replispec.cli.overwriting import overwritten, resolved
from replispec.cli.places import NamedPath
from replispec.cli.replay import command_line
from replispec.cli.stopping import AskedToStop, stopped_by_signals

if TYPE_CHECKING:
    from replispec.replay.engines.results import Options
    from replispec.replay.report.summary import Summary
    from replispec.replay.watch.watcher import Round, Watcher

EXAMPLES = """\b
Examples:
  replispec watch captures/ --out result
  replispec watch captures/ --out result --format json | alert-somebody
  replispec watch captures/ --out result --until-quiet 60; echo "exit code $?"
  replispec watch -i eth0 --out result
  replispec capture --out captures/trace.pcapng --run & replispec watch captures/ --out result
"""
CHECKPOINT_NAME, RING_NAME = "checkpoint", "ring"
MIB = 1 << 20
SECONDS_MAXIMUM = 86_400.0


@click.command(
    epilog=EXAMPLES, short_help="Judge captures while they grow: alerts now, the verdict at the end."
)
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-i", "interface", metavar="IFACE", help="Capture there with dumpcap, and watch that.")
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=NamedPath(file_okay=False, path_type=Path),
    help="Folder for alerts.jsonl and, at the end, what a replay writes.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=NamedPath(file_okay=False, path_type=Path),
    help="Where a watch is kept that may be killed and started again: copies of the captures, and what was "
    f"decoded of them.  [default: {CHECKPOINT_NAME} in --out]",
)
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice([engines.LOCAL, engines.SPARK]),
    default=engines.LOCAL,
    show_default=True,
    help="Who decodes: this process, which starts in a second, or Spark's structured streaming on all cores; "
    "both give the same.",
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How alerts and the end are printed: sentences, or a line of JSON each.",
)
@click.option(
    "--every",
    "interval_s",
    metavar="SECONDS",
    type=Finite(0.05, SECONDS_MAXIMUM),
    default=1.0,
    show_default=True,
    help="How long to wait before looking again.",
)
@click.option(
    "--until-quiet",
    "quiet_s",
    metavar="SECONDS",
    type=Finite(0.0, SECONDS_MAXIMUM),
    help="End when nothing new was written for so long; without it Ctrl-C or SIGTERM ends a watch.",
)
@click.option(
    "--stretch-mib",
    metavar="MIB",
    type=click.IntRange(1, 1 << 20),
    default=128,
    show_default=True,
    help="Alerts are told of the last so many MiB of capture; the verdict at the end is on all of it.",
)
@click.option(
    "--learner",
    "learners",
    metavar="ID",
    multiple=True,
    help="A broker that is an asynchronous learner, as for replay. May be repeated.",
)
@capture_options.ha_ports
@capture_options.ha_5_0_0
@click.option("--all-ack-in-sync-state-set", "all_ack", is_flag=True, help="As for replay.")
@click.option("--bodies", is_flag=True, help="Keep the bodies of messages in frames.parquet.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but alerts, warnings and the end.")
def watch(
    folder: Path | None,
    interface: str | None,
    out: Path,
    checkpoint: Path | None,
    engine_name: str,
    shape: str,
    interval_s: float,
    quiet_s: float | None,
    stretch_mib: int,
    learners: tuple[str, ...],
    ha_ports: tuple[int, ...],
    ha_5_0_0: bool,
    all_ack: bool,
    bodies: bool,
    quiet: bool,
) -> int:
    """Judge the captures in FOLDER while they are written, all of them as one capture.

    New files are read as they come and grow (dumpcap -b, tcpdump -G), each to its last whole record. A lost
    message or a broken rule is an alert within seconds, on standard output and in alerts.jsonl, and told
    once, however often the watch is killed and started again: it goes on from its checkpoint. When it ends
    (Ctrl-C, SIGTERM, a closed terminal, --until-quiet) it writes what `replispec replay --rotated` writes of
    the same files, and exits as that does.

    Files are copied before they are read, so that a ring may overwrite them. One that vanished unread, was
    replaced, overlaps another one, or came too late is named, and the exit code is 2. Until the end
    memory does not grow with what was captured; the verdict at the end holds all events. The disk grows:
    copies and what was decoded stay in --checkpoint. docs/watch.md
    has the rest.

    Exit code 0: nothing violated or lost. 1: something was. 2: something could not be used, or not be read
    wholly.
    """
    _check(folder, interface, out, checkpoint)
    chosen, _ = engines.choose(engine_name)
    if not quiet:
        click.echo(_engine_line(chosen), err=True)
    from replispec.replay.engines.results import Options
    from replispec.replay.watch.watcher import Bounds, watching

    options = Options(
        learners=learners,
        ha_ports=ha_ports,
        ha_5_0_0=ha_5_0_0,
        all_ack=all_ack,
        bodies=bodies,
        command=command_line(),
    )
    bounds = Bounds(stretch=stretch_mib * MIB)
    kept = checkpoint or out / CHECKPOINT_NAME
    told = _Told(shape, quiet=quiet)
    with _plain_failures(), watching(folder or kept / RING_NAME, out, kept, options, bounds) as watcher:
        with ExitStack() as stack:
            # Whoever ends the watch ends what it has started, from the first moment on.
            pace = _Pace(chosen, interval_s, quiet_s, stack.enter_context(stopped_by_signals()))
            if interface is not None:
                pace.ring = stack.enter_context(listening(interface, kept / RING_NAME, ha_ports))
            told.begins(interface or str(folder), watcher)
            _watched(watcher, kept, out, options, pace, told)
        return _ended(watcher, out, pace, told)


class _Pace:
    """When to look again, and when to end."""

    def __init__(self, engine: str, interval_s: float, quiet_s: float | None, stop: AskedToStop) -> None:
        self.engine = engine
        self._stop = stop
        self.ring: Listening | None = None
        self._interval_s = interval_s
        self._rounds = None if quiet_s is None else int(quiet_s / interval_s)
        self._quiet = 0

    def goes_on(self, *, new: bool, more: bool) -> bool:
        """Wait as long as there is nothing to do; whether to look again."""
        self._quiet = 0 if new else self._quiet + 1
        if self._rounds is not None and self._quiet > self._rounds:
            return False
        if self.ring is not None and not self.ring.is_alive():
            return False
        return not self._stop.wait(0.0 if more else self._interval_s)


def _watched(
    watcher: Watcher, checkpoint: Path, out: Path, options: Options, pace: _Pace, told: _Told
) -> None:
    """Look, decode and judge until it ends."""
    judged: list[Round] = []

    def judge() -> None:
        judged.append(watcher.judge())

    with ExitStack() as stack:
        decode = judge
        if pace.engine == engines.SPARK:
            from replispec.replay.watch.spark_watch import streaming

            decode = stack.enter_context(
                streaming(checkpoint, out, options.cluster, watcher.bounds.stretch, judge)
            )
        new, more = True, True
        while pace.goes_on(new=new, more=more):
            new = watcher.look()
            if new:
                decode()
            more = any(each.more for each in judged)
            for each in judged:
                told.round(each)
            judged.clear()


def _ended(watcher: Watcher, out: Path, pace: _Pace, told: _Told) -> int:
    """The verdict on everything, when nothing captures any more."""
    ring = pace.ring
    died = ring is not None and ring.died
    if ring is not None and ring.died:
        click.echo(f"replispec: dumpcap ended by itself; {ring.log} says why", err=True)
    told.ends()
    summary, last = watcher.end(pace.engine)
    told.round(last)
    told.verdict(summary, out)
    return EXIT_UNUSABLE if died or watcher.ledger.unusable else summary.exit_code


class _Told:
    """What people and scripts are told: alerts and the end on standard output, the rest on standard error."""

    def __init__(self, shape: str, *, quiet: bool) -> None:
        self._shape = shape
        self._quiet = quiet

    def begins(self, what: str, watcher: Watcher) -> None:
        """Where it begins, or goes on."""
        files = len(watcher.ledger.order)
        before = (
            f", going on after {files} files and {len(watcher.alerts)} alerts" if watcher.continued else ""
        )
        self._hint(f"watching {what}{before}; Ctrl-C ends it with the verdict")
        if others := watcher.alerts.of_others:
            from replispec.replay.report.wording import counted
            from replispec.replay.watch.alerts import ALERTS_NAME

            told = counted(others, "alert")
            self._hint(f"{ALERTS_NAME} has {told} of an earlier watch; they stay, none is written twice")

    def round(self, each: Round) -> None:
        """What one step brought."""
        for line in each.said:
            complain(line)
        for alert in each.alerts:
            self._line(alert.line, f"ALERT {alert.text}")

    def ends(self) -> None:
        """Judging everything may take a while."""
        self._hint("the watch ends; judging all of it")

    def verdict(self, summary: Summary, out: Path) -> None:
        """What the replay of everything comes to."""
        from replispec.cli.summary_text import summary_text
        from replispec.replay.engines.results import REPORT_NAME

        for capture in summary.captures:
            for complaint in filter(None, (capture.error, *capture.warnings)):
                complain(complaint)
        if self._shape == "json":
            end = {
                "kind": "end",
                "exit_code": summary.exit_code,
                "verdicts": summary.verdicts,
                "losses": len(summary.losses),
                "unread": [line for capture in summary.captures for line in capture.unread],
            }
            self._write(orjson.dumps(end) + b"\n")
        else:
            self._write(summary_text(summary, out / REPORT_NAME, sys.stdout.isatty()).encode())

    def _line(self, line: dict[str, object], text: str) -> None:
        self._write(orjson.dumps(line) + b"\n" if self._shape == "json" else f"{text}\n".encode())

    def _write(self, content: bytes) -> None:
        # Who reads may go away; the watch goes on, and alerts.jsonl has everything.
        try:
            with standard_output() as stream:
                stream.write(content)
        except ReaderGone:
            pass

    def _hint(self, text: str) -> None:
        if not self._quiet:
            click.echo(f"replispec: {text}", err=True)


@contextmanager
def _plain_failures() -> Iterator[None]:
    """What a user can act on, as one line. Raises click.ClickException."""
    from replispec.replay.capture.records import CaptureError
    from replispec.replay.engines.cluster import ClusterError
    from replispec.replay.watch.checkpoint import CheckpointError
    from replispec.replay.watch.watcher import NothingCapturedError

    try:
        yield
    except (CheckpointError, CaptureError, ClusterError, NothingCapturedError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        said = describe(error)
        if said is None:
            raise
        raise click.ClickException(said) from error


def _engine_line(engine: str) -> str:
    if engine == engines.SPARK:
        return "replispec: Spark's structured streaming decodes; --engine local starts sooner"
    return "replispec: this process decodes; --engine spark uses all cores"


def _check(folder: Path | None, interface: str | None, out: Path, checkpoint: Path | None) -> None:
    """Refuse what cannot be meant. Raises click.UsageError."""
    if (folder is None) == (interface is None):
        raise click.UsageError("name a FOLDER to watch, or an interface with -i")
    if interface is not None:
        check(interface)
    if folder is None:
        return
    for option, path in (("--out", out), ("--checkpoint", checkpoint)):
        if path is not None and resolved(path) == resolved(folder):
            raise click.UsageError(f"{option}: {path} is the folder that is watched: name another one")
    from replispec.replay.watch.watcher import WATCH_NAMES

    said = overwritten([("--out", out / name) for name in WATCH_NAMES], [folder])
    if said:
        raise click.UsageError(said[0])
