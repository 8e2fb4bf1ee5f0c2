"""What the benchmarks ask of a family of protocols: one object, `FAMILY` in `benchmarks.<family>.family`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from lab import families
from lab.cluster import Cluster
from lab.errors import LabError
from lab.subjects.subject import Subject

FLOOR = "floor"
SEALED = "-tls"
"""Behind the name of a subject: the same with TLS."""
CodecCase = Callable[[], object]


class WrongResultError(LabError):
    """What was measured did something else than it has to: its speed counts for nothing."""


class Bench:
    """What was seen: by figure and by implementation."""

    def __init__(self, figures: Mapping[str, tuple[str, bool]]) -> None:
        self.figures = figures
        self.seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def note(self, figure: str, who: str, value: float) -> None:
        """Keep one measurement, and show it."""
        assert figure in self.figures or figure == FLOOR, figure
        self.seen[figure][who].append(value)
        print(f"  {who:<12} {figure}: {value:,.3f}", file=sys.stderr, flush=True)


@contextmanager
def in_a_folder(what: str) -> Iterator[Cluster]:
    """A cluster that leaves nothing behind."""
    folder = Path(tempfile.mkdtemp(prefix=f"replispec-bench-{what}-"))
    try:
        with Cluster(folder) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Dissected:
    """The family's dissector, which frames tshark shows with it, and which fields of them."""

    script: str
    shown: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasuredRoles:
    """Our roles and those of somebody else, in turns.

    `subjects` are ours and theirs, measured as they are and, under a name that ends in SEALED, with TLS;
    `figures` name what is measured, with its unit and whether more is better. `requests` takes rounds and
    seconds, `replication` rounds and megabytes.
    """

    subjects: Sequence[Subject]
    against: str
    figures: Mapping[str, tuple[str, bool]]
    requests: Callable[[Bench, int, float], None]
    replication: Callable[[Bench, int, int], None]


@dataclass(frozen=True, slots=True)
class MeasuredGroups:
    """Groups of ours and of somebody else by name, and what is measured of those that run.

    `running` starts one; `requests` takes rounds and seconds, `leaders` rounds, `sets` seconds, and `restart`
    and `joins` how many records the log has before.
    """

    subjects: Mapping[str, Subject]
    figures: Mapping[str, tuple[str, bool]]
    running: Callable[[str], AbstractContextManager[Any]]
    requests: Callable[[Bench, Sequence[Any], int, float], None]
    leaders: Callable[[Bench, Sequence[Any], int], None]
    sets: Callable[[Bench, Sequence[Any], float], None]
    restart: Callable[[Bench, Sequence[Any], int], None]
    joins: Callable[[Bench, Sequence[Any], int], None]


@dataclass(slots=True)
class Attacked:
    """What one attack did: how much of it there was, the longest waits in milliseconds by role, how often a
    master was elected, memory of the attacked process in MB before and at most."""

    name: str
    what: str
    count: int = 0
    worst_ms: dict[str, float] = field(default_factory=dict)
    elections: int = 0
    before_mb: float = 0.0
    most_mb: float = 0.0


@dataclass(frozen=True, slots=True)
class Hostile:
    """Attacks by name; `measure` carries these out, for so many seconds each, and says what was seen."""

    attacks: Sequence[str]
    measure: Callable[[Sequence[str], float], Iterator[Attacked]]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of queues is measured: `rounds` in turns, `messages` of each kind in each, how often a queue
    moves, and how many topics are told."""

    rounds: int
    messages: int
    moves: int
    topics: int


@dataclass(frozen=True, slots=True)
class QueuePart:
    """One part of what is measured of queues that are mapped: `figures` of `columns`, the others as a ratio
    to `base` of the same round. `measure` raises WrongResultError; `subjects` have to be there for it."""

    about: str
    columns: Sequence[str]
    base: str
    figures: Mapping[str, tuple[str, bool]]
    measure: Callable[[Bench, Effort], None]
    subjects: Sequence[Subject] = ()


@dataclass(frozen=True, slots=True)
class MeasuredFamily:
    """One family. `codec_cases` are calls by name with the bytes that each reads, a bare parse first;
    `generate_capture` writes the capture that the options of `capture_options` name, and gives the truth
    about it (see truth.py); the options `megabytes` and `seed` are among them. `shapes` are captures of
    different kinds, as values of these options."""

    codec_cases: Callable[[], Mapping[str, tuple[CodecCase, int]]]
    capture_options: Callable[[ArgumentParser], None]
    generate_capture: Callable[[Path, Namespace], Mapping[str, object]]
    shapes: Mapping[str, Mapping[str, object]]
    dissected: Dissected
    roles: MeasuredRoles
    groups: MeasuredGroups
    hostile: Hostile
    queues: Mapping[str, QueuePart]


def measured_family(family: str) -> MeasuredFamily:
    """What the benchmarks are told of a family."""
    found: MeasuredFamily = import_module(f"benchmarks.{family}.family").FAMILY
    return found


def capture_options(about: str | None) -> tuple[MeasuredFamily, ArgumentParser]:
    """The family that the command line names, and a parser with the options of its generated capture."""
    first = ArgumentParser(add_help=False)
    families.add_choice(first, "benchmarks")
    family = measured_family(first.parse_known_args()[0].family)
    parser = ArgumentParser(description=about, parents=[first])
    family.capture_options(parser)
    return family, parser
