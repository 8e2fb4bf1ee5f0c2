"""What both commands for static topics share: options, files, an interrupted run finished first."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from replispec.administrator.rocketmq import mappings, static_topics
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.administrator.rocketmq.remapping import MappingRun, finished, from_file, is_unfinished
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.cli.peers_text import say
from replispec.cli.rocketmq.admin.asking import RefusedToAskError, ask, dry_run_option, name_servers_option
from replispec.runtime.net.clock import wall_ms

EXIT_REFUSED: Final = 1
FINISHED_MAX: Final = 8
"""Runs that finish what others left, in one call."""
MAPPING_BYTES_MAX: Final = 64 * 1024 * 1024


class NameList(click.ParamType[tuple[str, ...]]):
    """NAME,NAME."""

    name = "names"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[str, ...]:
        """A tuple of them."""
        if isinstance(value, tuple):
            return value
        found = tuple(each.strip() for each in str(value).split(",") if each.strip())
        return found or self.fail("no name", parameter, context)


@dataclass(frozen=True, slots=True)
class RunWanted:
    """The options of one of the two commands."""

    topic: str
    brokers: Sequence[str]
    of_clusters: Sequence[str]
    name_servers: Sequence[str]
    map_file: Path | None
    force: bool
    dry_run: bool
    total: int | None = None


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of both."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS: Final = (
    click.option("-t", "--topic", metavar="NAME", required=True, help="The topic."),
    click.option(
        "-b", "--brokers", metavar="NAME[,...]", type=NameList(), default=(), help="Brokers that are to lead."
    ),
    click.option(
        "-c",
        "--clusters",
        "of_clusters",
        metavar="NAME[,...]",
        type=NameList(),
        default=(),
        help="The same: all brokers of these clusters.",
    ),
    click.option(
        "-mf",
        "--mapFile",
        "map_file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Set the mappings of this file, as a run wrote it (NAME-EPOCH.after).",
    ),
    click.option(
        "-fr",
        "--forceReplace",
        "force",
        type=bool,
        default=False,
        show_default=True,
        help="Brokers check nothing, and where they contradict one another the newest mapping counts.",
    ),
    name_servers_option,
    dry_run_option,
)

Planned = Callable[[TopicAtBrokers, Sequence[str], int], MappingRun]
"""Of what is known, the target brokers and the time: what is to be done. Raises NotAsWantedError."""


def carry_out(asked: RunWanted, planned: Planned) -> int:
    """Finish what an interrupted run left, then do what is wanted; the exit code."""
    if asked.map_file is None and not (asked.brokers or asked.of_clusters):
        raise click.UsageError("one of -b, -c and -mf is needed")
    with refusals() as refused:
        _carried_out(asked, planned)
    return EXIT_REFUSED if refused else 0


@contextmanager
def refusals() -> Iterator[list[str]]:
    """What the block cannot have is one line on standard error, and is kept."""
    refused: list[str] = []
    try:
        yield refused
    except (NotAsWantedError, RefusedToAskError) as error:
        refused.append(str(error))
        say(f"replispec: {error}", err=True)


def _carried_out(asked: RunWanted, planned: Planned) -> None:
    known = _known(asked)
    if asked.map_file is not None:
        _of_file(asked, known, asked.map_file)
        return
    targets = known.targets(asked.brokers, asked.of_clusters)
    if asked.total is not None and asked.total < known.topic.total:
        raise NotAsWantedError(
            f"Cannot decrease the queue num for static topic {asked.total} < {known.topic.total}"
        )
    was_unfinished = False
    for _ in range(FINISHED_MAX):
        if not is_unfinished(known.topic, known.every(())):
            break
        was_unfinished = True
        say(f"an interrupted run of {asked.topic} is finished first", err=True)
        run = finished(known.topic, known.every(()), wall_ms(), force=asked.force)
        _set(asked, known, run)
        if asked.dry_run:
            return
        known = _known(asked)
    if was_unfinished and asked.total == known.topic.total:
        return
    _set(asked, known, planned(known, targets, wall_ms()))


def _known(asked: RunWanted) -> TopicAtBrokers:
    return ask(static_topics.known(asked.name_servers, asked.topic))


def _of_file(asked: RunWanted, known: TopicAtBrokers, path: Path) -> None:
    with path.open("rb") as file:
        data = file.read(MAPPING_BYTES_MAX + 1)
    if len(data) > MAPPING_BYTES_MAX:
        raise NotAsWantedError(f"{path}: more than {MAPPING_BYTES_MAX} bytes")
    run = mappings_run(data, asked.topic)
    every = known.every(run.topic.parts)
    _set(asked, known, from_file(known.topic, run, every, force=asked.force))


def mappings_run(data: bytes, topic: str) -> MappingRun:
    """The run that a file tells. Raises NotAsWantedError."""
    kind, found, gains, loses = mappings.read_file(data, topic)
    return MappingRun(kind, found, gains, loses)


def _set(asked: RunWanted, known: TopicAtBrokers, run: MappingRun) -> None:
    """Write both files, then carry the run out."""
    was = known.topic.epoch if known.topic.parts else run.topic.epoch
    before = mappings.file_of(known.topic, was, run.kind)
    after = mappings.file_of(run.topic, run.topic.epoch, run.kind, run.gains, run.loses)
    old = _written(f"{asked.topic}-{was}.before", before)
    say(f"The old mapping data is written to file {old}")
    new = _written(f"{asked.topic}-{run.topic.epoch}.after", after)
    say(f"The new mapping data is written to file {new}")
    if asked.dry_run:
        for line in told(run):
            say(line)
        return
    ask(static_topics.carried_out(run, known.brokers, force=asked.force))


def told(run: MappingRun) -> Sequence[str]:
    """What a run does, in the order of its steps."""
    lines = [f"epoch {run.topic.epoch}: {run.topic.total} logical queues"]
    for index, chain in run.chains.items():
        where = f"{chain.leader} queue {chain.tail.queue.queue_id}"
        begins = "from a start that is decided then" if not chain.tail.is_decided else ""
        lines.append(f"logical queue {index}: {where} {begins}".rstrip())
    for verb, names in (("gains", run.gains), ("loses", run.loses), ("is told", run.others)):
        lines += [f"{name} {verb}" for name in names]
    return lines


def _written(name: str, data: bytes) -> Path:
    """In the folder for temporary files, whole or not at all."""
    folder = Path(tempfile.gettempdir())
    path = folder / name
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{name}.", delete=False) as file:
            file.write(data)
        os.replace(file.name, path)
    except OSError as error:
        raise RefusedToAskError(f"{path}: {error.strerror}") from error
    return path
