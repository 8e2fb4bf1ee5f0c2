"""`replispec replay`: captures to verdicts, losses and a report."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from replispec.cli import engines
from replispec.cli.output import ReaderGone, standard_output
from replispec.cli.progress import counting

EXAMPLES = """\b
Examples:
  replispec replay trace.pcap --out result
  replispec replay monday.pcap tuesday.pcap --out result --engine local
  replispec replay trace.pcap --out result --format json | jq .losses
  replispec replay trace.pcap trace.pcap1 trace.pcap2 --rotated --out result
"""
HINT = """\
replispec: these names look like one capture in several files; each is judged on its own, so that what
replispec: goes on in the next file is unknown there. Add --rotated if they are parts of one capture."""


@click.command(epilog=EXAMPLES, short_help="Judge captures: lost messages, broken rules, a report.")
@click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.html, summary.json and the Parquet files; what they replace is lost.",
)
@click.option(
    "--engine",
    "engine_name",
    type=click.Choice([engines.AUTO, engines.SPARK, engines.LOCAL]),
    default=engines.AUTO,
    show_default=True,
    help="Spark on all cores of this machine, or one process without a JVM; both give the same. "
    "auto: Spark where it is installed with a JDK.",
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
@click.option(
    "--ha-port",
    "ha_ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port on which masters replicate, where the bytes alone do not tell. May be repeated.",
)
@click.option(
    "--ha-5-0-0", is_flag=True, help="Masters are of release 5.0.0, whose handshake answer is padded."
)
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
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the packets that prove findings to FILE, a pcapng capture that says what each proves.",
)
@click.option(
    "--rotated",
    is_flag=True,
    help="All CAPTUREs are parts of one capture, as tcpdump -C, -G, -W and dumpcap -b write them.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress and no hints; warnings and errors stay.")
def replay(
    captures: tuple[Path, ...],
    out: Path,
    engine_name: str,
    shape: str,
    learners: tuple[str, ...],
    ha_ports: tuple[int, ...],
    ha_5_0_0: bool,
    all_ack: bool,
    bodies: bool,
    evidence: Path | None,
    rotated: bool,
    quiet: bool,
) -> int:
    """Judge the traffic in each CAPTURE, a pcap or pcapng file, also compressed by gzip.

    Says which acknowledged messages were lost, which rules of the protocol were broken and by which frames,
    and who was master when. Every file is judged on its own, unless --rotated says that all of them are
    one capture: then a connection goes on from one file to the next. Their order is told by their packets'
    times; files that overlap in time are refused, a long silence between two is reported.

    Good captures keep whole packets and begin before the connections they are about, for example
    `tcpdump -i any -s 0 -w trace.pcap tcp` on every host from before its broker starts. What rests
    on missing packets is judged unknown. report.html shows masters, fail-overs, offsets, latencies and the
    frames that prove a finding; summary.json and the Parquet files are for scripts.

    Exit code 0: nothing violated or lost. 1: something was. 2: a file could not be used, or nothing in it
    could be read (only encrypted tunnels, for example); the others were replayed.
    """
    _check(captures)
    engine, said = engines.choose(engine_name)
    if said and not quiet:
        click.echo(f"replispec: {said}", err=True)
    from replispec.cli.summary_text import summary_json, summary_text
    from replispec.replay.engines import results, run
    from replispec.replay.tcp.rotation import look_rotated

    options = results.Options(
        learners=learners, ha_ports=ha_ports, ha_5_0_0=ha_5_0_0, all_ack=all_ack, bodies=bodies
    )
    sources = [captures] if rotated else list(captures)
    if not rotated and not quiet and look_rotated(captures):
        click.echo(HINT, err=True)
    unwatched = "judging with Spark (about 15 s)" if engine == engines.SPARK else ""
    with counting(f"replaying with {engine}", len(sources), quiet=quiet, unwatched=unwatched) as progress:
        summary = run.replay(sources, out, run.EngineName(engine), options, progress, evidence)
    for capture in summary.captures:
        for complaint in filter(None, (capture.error, *capture.warnings)):
            name = "" if complaint.startswith(f"{capture.file}:") else f"{capture.file}: "
            click.echo(f"replispec: {name}{complaint}", err=True)
    try:
        with standard_output() as stream:
            if shape == "json":
                stream.write(summary_json(summary))
            else:
                stream.write(summary_text(summary, out / results.REPORT_NAME, sys.stdout.isatty()).encode())
    except ReaderGone:
        pass
    return summary.exit_code


def _check(captures: Sequence[Path]) -> None:
    """Refuse what cannot work before anything is started. Raises click.ClickException."""
    twice = [name for name, count in Counter(path.name for path in captures).items() if count > 1]
    if twice:
        raise click.UsageError(f"two captures are called {twice[0]}: results are told apart by this name")
