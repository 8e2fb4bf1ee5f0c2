"""`replispec replay`: captures to verdicts, losses and a report."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from replispec.cli import capture_options, engines
from replispec.cli.captures import STANDARD_INPUT, CapturePlace, Fetch, Moment, given, unusable
from replispec.cli.engines import Setting
from replispec.cli.failures import EXIT_UNUSABLE, complain, describe
from replispec.cli.output import ReaderGone, standard_output
from replispec.cli.overwriting import overwritten, resolved
from replispec.cli.places import NamedPath, unwritable
from replispec.cli.progress import counting

if TYPE_CHECKING:
    from replispec.replay.engines.results import Options
    from replispec.replay.hosts.told import Merged
    from replispec.replay.report.summary import Summary
    from replispec.replay.tcp.rotation import Source

EXAMPLES = """\b
Examples:
  replispec replay trace.pcap --out result
  replispec replay monday.pcap tuesday.pcap --out result --engine local
  replispec replay trace.pcap --out result --format json | jq .losses
  replispec replay trace.pcap trace.pcap1 trace.pcap2 --rotated --out result
  replispec replay broker-a.pcap broker-b.pcap controller.pcap --merge story.pcapng --out result
  tcpdump -w - -s 0 tcp | replispec replay - --out result
  replispec replay trace.pcap --out result --master spark://host:7077 --packed replispec.tar.gz
  replispec replay 's3a://bucket/day/*.pcap' --out result --spark-setting spark.jars.packages=...
  replispec replay trace.pcap --out result --group broker-a --from 2026-11-21T01:07:00
"""
# The local engine with what it decodes on the disk.
BOUNDED = "local (bounded memory)"
# No summary.json of a replay is larger: 300 groups take about 2 MB.
SUMMARY_BYTES_MAXIMUM = 1 << 28
HINT = """\
replispec: these names look like one capture in several files; each is judged on its own, so that what
replispec: goes on in the next file is unknown there. Add --rotated if they are parts of one capture."""


@click.command(epilog=EXAMPLES, short_help="Judge captures: lost messages, broken rules, a report.")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=CapturePlace())
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=NamedPath(file_okay=False, path_type=Path),
    help="Folder for report.html, summary.json and the Parquet files. An older result there stays as it is "
    "until the new one is whole, and is then replaced.",
)
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice([engines.AUTO, engines.SPARK, engines.LOCAL]),
    default=engines.AUTO,
    show_default=True,
    help="Spark on all cores of this machine, or one process without a JVM; both give the same. "
    "auto: one process for captures of up to 64 MB in all, which it judges before Spark has started; else "
    "Spark, where it is installed with a JDK.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Where Spark runs: spark://HOST:PORT is a cluster; without it, all cores of this machine.",
)
@click.option(
    "--packed",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `replispec pack` wrote, for workers of a cluster that have no replispec.",
)
@click.option(
    "--spark-setting",
    "settings",
    metavar="NAME=VALUE",
    type=Setting(),
    multiple=True,
    help="A setting of Spark's own, as spark.executor.memory=4g. May be repeated.",
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is printed at the end: a table, or the content of summary.json.",
)
@click.option(
    "--learner",
    "learners",
    metavar="ID",
    multiple=True,
    help="A broker that is an asynchronous learner, by its id (up to 5.1.0: its address). May be repeated.",
)
@capture_options.ha_ports
@capture_options.ha_5_0_0
@click.option(
    "--all-ack-in-sync-state-set",
    "all_ack",
    is_flag=True,
    help="Brokers run with allAckInSyncStateSet: judge that the confirmOffset covers the SyncStateSet.",
)
@click.option("--bodies", is_flag=True, help="Keep the bodies of messages in frames.parquet.")
@click.option(
    "--evidence",
    metavar="FILE",
    type=NamedPath(dir_okay=False, path_type=Path),
    help="Also write the packets that prove findings to FILE, a pcapng capture that says what each proves.",
)
@capture_options.rotated
@click.option(
    "--merge",
    "merged",
    metavar="FILE",
    type=NamedPath(dir_okay=False, path_type=Path),
    help="CAPTUREs were taken on several hosts or interfaces at once: merge them into FILE, a pcapng "
    "capture in which each packet is once, on one clock and by one name, and judge that.",
)
@click.option(
    "--from",
    "from_ns",
    type=Moment(),
    metavar="UTC",
    help="Pass over packets before this moment, as 2026-11-21T01:07:29.147; what they held is unknown.",
)
@click.option(
    "--until",
    "until_ns",
    type=Moment(),
    metavar="UTC",
    help="Pass over packets from this moment on.",
)
@click.option(
    "--group",
    "groups",
    metavar="NAME",
    multiple=True,
    help="Tell of this broker group alone, with its later lives (NAME#2) and what may be of it: "
    "CONTROLLERGROUP/NAME or NAME; * is any text, every other sign is itself. May be repeated.",
)
@click.option(
    "--compare",
    metavar="OLD",
    type=NamedPath(exists=True, path_type=Path),
    help="Say what differs from an older replay (its summary.json, or its folder), of what both were asked.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress and no hints; warnings and errors stay.")
def replay(
    captures: tuple[Path | str, ...],
    out: Path,
    engine_name: str,
    master: str | None,
    packed: Path | None,
    settings: tuple[tuple[str, str], ...],
    shape: str,
    learners: tuple[str, ...],
    ha_ports: tuple[int, ...],
    ha_5_0_0: bool,
    all_ack: bool,
    bodies: bool,
    evidence: Path | None,
    rotated: bool,
    merged: Path | None,
    from_ns: int | None,
    until_ns: int | None,
    groups: tuple[str, ...],
    compare: Path | None,
    quiet: bool,
) -> int:
    """Judge the traffic in each CAPTURE, a pcap or pcapng file, also compressed by gzip.

    Says which acknowledged messages were lost, which rules of the protocol were broken and by which frames,
    and who was master when. Every file is judged on its own, unless --rotated says that all of them are
    one capture: then a connection goes on from one file to the next. Their order is told by their packets'
    times; files that overlap in time are refused, a long silence between two is reported. `-` is standard
    input, read to its end or to Ctrl-C. An address that Hadoop knows (s3a://, hdfs://) names a file, a
    folder or a glob in a store; Spark reads it, and needs the jars for it.

    Good captures keep whole packets and begin before the connections they are about, for example
    `tcpdump -i any -s 0 -w trace.pcap tcp` on every host from before its broker starts. What rests
    on missing packets is judged unknown. report.html shows masters, fail-overs, offsets, latencies and the
    frames that prove a finding; summary.json and the Parquet files are for scripts.

    Exit code 0: nothing violated or lost. 1: something was. 2: a file could not be used, or nothing in it
    could be read (the others were replayed), or the command was wrong: an older result is then as it was.
    """
    _check(captures, from_ns, until_ns, groups, joined_twice=rotated and merged is not None)
    if _complained(_overwritten(captures, out, evidence, merged, packed, compare)):
        return EXIT_UNUSABLE
    of_cluster = engines.cluster_options(master, packed, settings)
    engine, said = engines.choose(engine_name, of_cluster, captures)
    _complained([said] if said and not quiet else [])
    from replispec.replay.capture.records import Window
    from replispec.replay.engines import cluster, results

    options = results.Options(
        learners=learners,
        ha_ports=ha_ports,
        ha_5_0_0=ha_5_0_0,
        all_ack=all_ack,
        bodies=bodies,
        cluster=cluster.Cluster(**of_cluster),
        command=command_line(),
        window=Window(from_ns, until_ns),
        groups=groups,
        compared=None if compare is None else _summary(compare),
    )
    if not (rotated or merged or quiet):
        _hint([Path(capture) for capture in captures])
    with _files(captures, out, options, quiet=quiet) as paths:
        if _complained(unusable(paths)):
            return EXIT_UNUSABLE
        story = None if merged is None else _merged(paths, merged, out)
        sources: Sequence[Source] = [paths] if rotated else paths if merged is None else [merged]
        summary = _replayed(sources, out, _bounded(engine, captures), options, evidence, story, quiet=quiet)
    _tell(summary, out / results.REPORT_NAME, shape)
    return summary.exit_code


def _bounded(engine: str, captures: Sequence[Path | str]) -> str:
    """The engine, or the one that does with less memory: what comes through a pipe may be of any length."""
    return BOUNDED if STANDARD_INPUT in captures and engine == engines.LOCAL else engine


@contextmanager
def _files(
    captures: Sequence[Path | str], out: Path, options: Options, *, quiet: bool
) -> Iterator[list[Path]]:
    """The captures as files with names of their own. Raises click.ClickException."""
    with given(captures, _fetching(out, options, quiet=quiet)) as paths:
        _check_names(paths)
        yield paths


def _fetching(out: Path, options: Options, *, quiet: bool) -> Fetch:
    """What fetches captures from a store by Spark, whose log is in `out`; it raises click.ClickException."""

    def fetch(url: str, folder: Path) -> list[Path]:
        from replispec.replay.engines.cluster import ClusterError, StoreError
        from replispec.replay.engines.spark_stores import fetched

        out.mkdir(parents=True, exist_ok=True)
        with counting(f"fetching {url}", 1, quiet=quiet, unwatched=f"fetching {url}"):
            try:
                return fetched(url, folder, options.cluster, out)
            except (ClusterError, StoreError) as error:
                raise click.ClickException(str(error)) from error

    return fetch


def _complained(complaints: Sequence[str]) -> bool:
    """Say what makes captures unusable; whether there was anything."""
    for complaint in complaints:
        complain(complaint)
    return bool(complaints)


def _overwritten(
    captures: Sequence[Path | str],
    out: Path,
    evidence: Path | None,
    merged: Path | None,
    packed: Path | None,
    compare: Path | None,
) -> list[str]:
    """What one of the files to be written would replace of those that are read, or why it cannot be."""
    from replispec.replay.engines.results import OUTPUT_NAMES, SUMMARY_NAME

    # What lies in a store is copied first, and no file of ours.
    read = [path for path in (*captures, packed) if isinstance(path, Path) and path != STANDARD_INPUT]
    results = [("--out", out / name) for name in OUTPUT_NAMES]
    for option, path in (("--evidence", evidence), ("--merge", merged)):
        if path is not None and any(resolved(path).is_relative_to(resolved(own)) for _, own in results):
            return [f"{option}: {path} is where a result is written: name another one"]
    older = [] if compare is None else [compare, compare / SUMMARY_NAME]
    said = [] if merged is None else overwritten([("--merge", merged)], [*read, *older])
    named = older if merged is None else [*older, merged]
    said = said or ([] if evidence is None else overwritten([("--evidence", evidence)], [*read, *named]))
    # An older replay in the same folder is read before it is replaced.
    said = said or overwritten(results, read if merged is None else [*read, merged])
    options = [(option, path) for option, path in (("--evidence", evidence), ("--merge", merged)) if path]
    return said or unwritable(options, out)


def _hint(captures: Sequence[Path]) -> None:
    """Say that captures look like parts of one."""
    from replispec.replay.tcp.rotation import look_rotated

    if look_rotated(captures):
        click.echo(HINT, err=True)


def _merged(paths: Sequence[Path], into: Path, out: Path) -> Merged:
    """Merge captures of several places. Raises click.ClickException."""
    from replispec.replay.hosts.merging import merge

    try:
        if resolved(into.parent) == resolved(out):
            out.mkdir(parents=True, exist_ok=True)
        return merge(paths, into)
    except (OSError, ValueError) as error:
        raise click.ClickException(describe(error) or str(error)) from error


def _replayed(
    sources: Sequence[Source],
    out: Path,
    engine: str,
    options: Options,
    evidence: Path | None,
    merged: Merged | None,
    *,
    quiet: bool,
) -> Summary:
    """Replay while progress is shown. Raises click.ClickException."""
    from replispec.replay.engines import run
    from replispec.replay.engines.chosen import NoGroupError
    from replispec.replay.engines.cluster import ClusterError
    from replispec.replay.report.compare import NoSummaryError
    from replispec.replay.watch.bounded import replay_bounded

    unwatched = "judging with Spark (about 15 s)" if engine == engines.SPARK else ""
    with counting(f"replaying with {engine}", len(sources), quiet=quiet, unwatched=unwatched) as progress:
        try:
            if engine == BOUNDED:
                return replay_bounded(sources, out, options, progress, evidence, merged)
            return run.replay(sources, out, run.EngineName(engine), options, progress, evidence, merged)
        except (NoGroupError, NoSummaryError) as error:
            raise click.UsageError(str(error)) from error
        except ClusterError as error:
            raise click.ClickException(f"{options.cluster.master}: {error}") from error


def _tell(summary: Summary, report: Path, shape: str) -> None:
    """What is odd about captures on standard error, then the outcome on standard output."""
    from replispec.cli.summary_text import summary_json, summary_text

    for capture in summary.captures:
        for complaint in filter(None, (capture.error, *capture.warnings)):
            name = "" if complaint.startswith(f"{capture.file}:") else f"{capture.file}: "
            complain(name + complaint)
    try:
        with standard_output() as stream:
            if shape == "json":
                stream.write(summary_json(summary))
            else:
                stream.write(summary_text(summary, report, sys.stdout.isatty()).encode())
    except ReaderGone:
        pass


def _check(
    captures: Sequence[Path | str],
    from_ns: int | None,
    until_ns: int | None,
    groups: Sequence[str],
    *,
    joined_twice: bool,
) -> None:
    """Refuse what cannot work before anything is started. Raises click.ClickException."""
    if joined_twice:
        raise click.UsageError("--rotated joins parts of one capture, --merge several captures: not both")
    if from_ns is not None and until_ns is not None and from_ns >= until_ns:
        raise click.UsageError("--from is not before --until: no packet lies between them")
    if not all(group.strip() for group in groups):
        raise click.UsageError("--group: a name is needed, and this one is empty (* is any group)")
    _check_names([path for path in captures if isinstance(path, Path)])


def _check_names(paths: Sequence[Path]) -> None:
    """Refuse captures of one name. Raises click.ClickException."""
    twice = [name for name, count in Counter(path.name for path in paths).items() if count > 1]
    if twice:
        raise click.UsageError(f"two captures are called {twice[0]}: results are told apart by this name")


def _summary(path: Path) -> dict[str, Any]:
    """The content of an older summary.json, or of the one in a folder. Raises click.ClickException."""
    from replispec.replay.engines.results import SUMMARY_NAME

    file = path / SUMMARY_NAME if path.is_dir() else path
    with file.open("rb") as opened:
        content = opened.read(SUMMARY_BYTES_MAXIMUM + 1)
    try:
        found = orjson.loads(content if len(content) <= SUMMARY_BYTES_MAXIMUM else b"")
    except ValueError as error:
        raise click.UsageError(f"{file}: no summary.json of a replay") from error
    if not isinstance(found, dict):
        raise click.UsageError(f"{file}: no summary.json of a replay")
    return found


def command_line() -> str:
    """The command line of this process, as a shell would take it, without secrets of settings.

    Raises click.UsageError for what is no UTF-8: results name their captures, and all of them are UTF-8.
    """
    for word in sys.argv[1:]:
        said = os.fsencode(word).decode(errors="backslashreplace")
        if said != word:
            raise click.UsageError(f"{said}: this name is not UTF-8, as results are: rename it")
    return shlex.join(["replispec", *map(engines.without_secrets, sys.argv[1:])])
