"""What becomes known of a capture of Apache RocketMQ while its judging is spread."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from replispec.replay.engines.results import Options
from replispec.replay.engines.rocketmq.broker_sets import BrokerSets
from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.event_tables import Numbers
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.cut_logs import Extent
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.history import History, Named
from replispec.replay.events.rocketmq.ranges import Epoch
from replispec.replay.events.rocketmq.recounts import Fallen, LinkEnds
from replispec.replay.events.rocketmq.stored import Ends
from replispec.replay.events.rocketmq.stream_events import Given, Judged, Measured, judged_of
from replispec.replay.events.rocketmq.stream_tables import FRAMES, told_epochs, with_groups
from replispec.replay.events.rocketmq.telling import Borders, Tables, gathered, without
from replispec.replay.events.tables import SCHEMAS, Events
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import PartFinding, PartFindings
from replispec.replay.judges.sends import LostAt
from replispec.replay.report.model import Answers, Latency, Overlap
from replispec.replay.report.ranks import Ranks
from replispec.replay.report.summary import CaptureRow

STORED: Final = ObservationKind.ACKNOWLEDGED


@dataclass(slots=True)
class Waits:
    """The answers of one request code: how many there are, and where among them the percentiles are."""

    unanswered: int = 0
    answered: int = 0
    ranks: Ranks = field(default_factory=Ranks)


@dataclass(slots=True)
class Aside:
    """What becomes known of a capture that parts of its connections do not ask for.

    `rows`: what is rare, in their order, with their groups; `tables`: of frequent events those that were
    handed on; `judged`, `walked`, and by epoch `bodies`: what rules and machines come to so far; `sets`: what
    is told one part alone, which judges some broker sets; `queues`: what is found of topics with logical
    queues.
    """

    rare: Events = field(default_factory=dict)
    rows: list[Observation] = field(default_factory=list)
    tables: Tables = field(default_factory=dict)
    pairs: PartFinding = field(default_factory=PartFinding)
    answers: list[Answers] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    judged: list[PartFindings] = field(default_factory=list)
    walked: list[PartFindings] = field(default_factory=list)
    bodies: dict[Epoch, list[PartFindings]] = field(default_factory=dict)
    sets: BrokerSets = field(default_factory=BrokerSets)
    queues: list[FindingRow] = field(default_factory=list)


@dataclass(slots=True)
class Known:
    """What is known of a capture. `rows`: what is rare, in their order, where meetings need it; `dropped`:
    messages that were only passed on; `records` and `fallen`: as `Measured` has them; `replicated`: the
    groups and masterEpochs of which transfers tell; `cut`: connections of which several parts have messages;
    `links`: replication connections that are cut: the parts that have their stretches, in order, and what
    joins these, and `rare_on_links` what is rare on them; `lost`: the messages that were lost, by the column
    AT; `topics`: those with logical queues, until they are judged.

    Of logs that are compared in blocks: how far each was carried (`extents`), in which epochs a place was
    given to other messages (`written_again`), from where on bodies are not compared (`cuts`), in which epochs
    that is told only now (`recut`), and in which a body differs (`differing`).
    """

    capture: CaptureRow
    options: Options
    parts: int
    groups: BrokerGroups
    aside: Aside
    rows: list[Observation] = field(default_factory=list)
    history: History | None = None
    records: dict[str, int] = field(default_factory=dict)
    fallen: Fallen = field(default_factory=dict)
    replicated: Collection[tuple[Any, Any]] = ()
    cut: Collection[str] = ()
    links: Mapping[str, Sequence[tuple[int, LinkEnds]]] = field(default_factory=dict)
    rare_on_links: Events = field(default_factory=dict)
    written_again: Collection[Epoch] = ()
    extents: Mapping[Epoch, Extent] = field(default_factory=dict)
    dropped: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    waits: dict[int, Waits] = field(default_factory=dict)
    given: Given | None = None
    borders: Borders = field(default_factory=dict)
    cuts: Ends = field(default_factory=dict)
    recut: Collection[Epoch] = ()
    differing: Collection[Epoch] = ()
    lost: LostAt = field(default_factory=LostAt)
    topics: Collection[str] = ()

    def apart(self) -> tuple[Known, Aside]:
        """What parts are told, and what they are not."""
        return replace(self, aside=Aside()), self.aside

    def take(self, tables: Iterable[Tables]) -> None:
        """More events that were handed on."""
        self.aside.tables = gathered([self.aside.tables, *tables])

    @property
    def block(self) -> int:
        """So many bytes of a log are compared at once."""
        return self.options.log_together_bytes

    def frequent(self) -> tuple[Columns, Columns]:
        """Messages and frames of replication that were handed on, and the rare ones, with their groups."""
        told = with_tables(self.aside.rare, self.aside.tables)
        if STORED in self.aside.tables:
            told[STORED] = self.aside.tables[STORED]
        events = CaptureEvents(told)
        frames = with_groups(events.columns(*FRAMES), self.groups)
        return with_groups(events.columns(STORED), self.groups), frames

    def joined(self) -> Judged:
        """What is rare, and what was handed on, joined to what is known."""
        assert self.history is not None
        events = CaptureEvents(with_tables(self.aside.rare, self.aside.tables))
        sends, frames = self.frequent()
        sends = told_epochs(sends, self.history.offices, self.aside.rows)
        named = Named(self.aside.rows, self.groups)
        measured = Measured(self.records, self.fallen)
        all_ack = self.options.all_ack
        return judged_of(events, named, frames, sends, self.history, measured, all_ack=all_ack)


def with_tables(rare: Events, tables: Tables) -> dict[ObservationKind, pa.Table]:
    """Events of rare kinds, and frequent ones that were handed on."""
    return {**rare, **{kind: table.select(SCHEMAS[kind].names) for kind, table in tables.items()}}


def sends_of(known: Known, events: CaptureEvents) -> Columns:
    """The messages of a part, with their groups, without those that were only passed on."""
    return with_groups(without(events.columns(STORED), known.dropped), known.groups)
