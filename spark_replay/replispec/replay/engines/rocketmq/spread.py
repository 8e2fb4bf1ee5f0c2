"""How judging a capture of Apache RocketMQ is spread over parts of its connections.

Names, groups and lives are told by what is rare. Then, round by round: the history (from few headers), runs
and ends of logs (from few messages), the verdicts (from every frame and message), and what is lost. Messages
with one place in a log meet, and messages and transfers of one masterEpoch: these are compared between
connections. The messages of one connection may be in several parts, each a stretch of it: then the order in
which they were requested meets before they are judged. All other events of a connection are in one part.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.told import result_of
from replispec.replay.engines.spread import Round, Said, Spread
from replispec.replay.events.capture_events import MANY, CaptureEvents, Columns
from replispec.replay.events.event_tables import Flags, Numbers, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.falls_in_order import (
    Behind,
    LogThere,
    Requested,
    falls_behind,
    requested,
    together,
)
from replispec.replay.events.rocketmq.history import History, Named, history_of
from replispec.replay.events.rocketmq.ranges import ranges
from replispec.replay.events.rocketmq.recounts import Fallen, fallen_of, fallen_to, of_recounts
from replispec.replay.events.rocketmq.stored import Ends, cuts_of, least_of
from replispec.replay.events.rocketmq.stream_events import (
    Given,
    Judged,
    Measured,
    confirms_table,
    judged_of,
    name_events,
)
from replispec.replay.events.rocketmq.stream_tables import (
    FRAMES,
    RUNS,
    Steps,
    longest_of,
    record_steps,
    told_epochs,
    with_epochs,
    with_groups,
)
from replispec.replay.events.rocketmq.telling import (
    AT,
    Borders,
    Tables,
    alike_elsewhere,
    borders_of,
    from_short,
    gathered,
    handed_on,
    in_short,
    numbered,
    numbers_of,
    of_history,
    of_logs,
    of_stored,
    of_story,
    without,
)
from replispec.replay.events.tables import SCHEMAS, Events
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.machines import of_connections, of_pairs
from replispec.replay.judges.parts import PartFinding, PartFindings, add_up
from replispec.replay.judges.rocketmq.judge import Judgement, conclude, named_learners, stream_judges
from replispec.replay.judges.sends import LossRow, LostAt, SendsRow
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.replay.report.model import Answers, Latency, Overlap
from replispec.replay.report.ranks import Ranks, counted
from replispec.replay.report.rocketmq.answers import Counts, answers_of, counted_answers
from replispec.replay.report.rocketmq.latencies import PERCENTS, latency, rank_of, waits
from replispec.replay.report.rocketmq.log_ends import moments
from replispec.replay.report.rocketmq.overlaps import added, overlaps
from replispec.replay.report.summary import CaptureRow

_STORED: Final = ObservationKind.ACKNOWLEDGED
_LISTS: Final = ("durations_ns", "answer_codes", "remarks")
_RANGES, _CONFIRMS, _PLACES, _ORDER = "ranges", "confirms", "places", "order"


@dataclass(slots=True)
class _Waits:
    """The answers of one request code: how many there are, and where among them the percentiles are."""

    unanswered: int = 0
    answered: int = 0
    ranks: Ranks = field(default_factory=Ranks)


@dataclass(slots=True)
class Known:
    """What is known of a capture. `tables`: of frequent events those that were handed on; `dropped`: messages
    that were only passed on; `records` and `fallen`: as `Measured` has them; `replicated`: the groups
    and masterEpochs of which transfers tell; `cut`: connections of which several parts have messages;
    `lost`: the messages that were lost, by the column AT.
    """

    capture: CaptureRow
    options: Options
    parts: int
    rare: Events
    named: Named
    tables: Tables = field(default_factory=dict)
    history: History | None = None
    records: dict[str, int] = field(default_factory=dict)
    fallen: Fallen = field(default_factory=dict)
    replicated: Collection[tuple[Any, Any]] = ()
    cut: Collection[str] = ()
    dropped: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    waits: dict[int, _Waits] = field(default_factory=dict)
    pairs: PartFinding = field(default_factory=PartFinding)
    answers: list[Answers] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    overlaps: list[Overlap] = field(default_factory=list)
    given: Given | None = None
    borders: Borders = field(default_factory=dict)
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    stored: list[SendsRow] = field(default_factory=list)
    lost: LostAt = field(default_factory=LostAt)
    result: CaptureResult | None = None

    def take(self, tables: Iterable[Tables]) -> None:
        """More events that were handed on."""
        self.tables = gathered([self.tables, *tables])

    def joined(self) -> Judged:
        """What is rare, and what was handed on, joined to what is known."""
        assert self.history is not None
        told = _with(self.rare, self.tables)
        if _STORED in self.tables:
            told[_STORED] = self.tables[_STORED]
        events = CaptureEvents(told)
        frames = with_groups(events.columns(*FRAMES), self.named.groups)
        sends = with_groups(events.columns(_STORED), self.named.groups)
        sends = told_epochs(sends, self.history.offices, self.named.rows)
        measured = Measured(self.records, self.fallen)
        all_ack = self.options.all_ack
        return judged_of(events, self.named, frames, sends, self.history, measured, all_ack=all_ack)


def _with(rare: Events, tables: Tables) -> dict[ObservationKind, pa.Table]:
    return {**rare, **{kind: table.select(SCHEMAS[kind].names) for kind, table in tables.items()}}


def _begin(capture: CaptureRow, rare: Events, parts: int, options: Options) -> Known:
    events = {kind: table for kind, table in rare.items() if kind not in MANY}
    capture = replace(capture, commands_unread=events[ObservationKind.UNDECODABLE].num_rows)
    return Known(capture, options, parts, events, name_events(CaptureEvents(events).few))


def _sends(known: Known, events: CaptureEvents) -> Columns:
    return with_groups(without(events.columns(_STORED), known.dropped), known.named.groups)


def _crc(text: str, parts: int) -> int:
    return zlib.crc32(text.encode()) % parts


# ---- what tells the history ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _First:
    """What a part tells first."""

    tables: list[Tables]
    pairs: PartFinding
    answers: Counts
    waits: dict[int, tuple[int, Counter[int]]]
    fallen: Fallen


def _first(known: Known, number: int, part: Events) -> Said:
    events = CaptureEvents(numbered(number, part))
    frames = with_groups(events.columns(*FRAMES), known.named.groups)
    sends = with_groups(events.columns(_STORED), known.named.groups)
    told = _First(
        [handed_on(frames, of_history(frames)), _unanswered(events)],
        of_pairs(events),
        counted_answers(events),
        {code: (unanswered, counted(waited)) for code, (unanswered, waited) in waits(events).items()},
        fallen_to(frames),
    )
    return Said(told, dict(_by_place(sends, known.parts)))


def _unanswered(events: CaptureEvents) -> Tables:
    """Requests that were not answered, without the others beside them."""
    latencies = events.columns(ObservationKind.LATENCY)
    found = handed_on(latencies, np.flatnonzero(latencies.numbers("unanswered").numbers))
    return {
        kind: table.drop_columns(list(_LISTS))
        .append_column("durations_ns", pa.nulls(table.num_rows, pa.list_(pa.int64())))
        .append_column("answer_codes", pa.nulls(table.num_rows, pa.list_(pa.int32())))
        .append_column("remarks", pa.nulls(table.num_rows, pa.list_(pa.string())))
        .select([*SCHEMAS[kind].names, AT])
        for kind, table in found.items()
    }


def _by_place(sends: Columns, parts: int) -> Iterator[tuple[str, pa.Table]]:
    """Messages by where they are in a log, with their groups."""
    group = sends.coded("group")
    names = pa.array(group.values, pa.string()).take(pa.array(group.codes))
    table = sends.table.append_column("group", names)
    for code, rows in split(sends.numbers("offset").numbers % parts):
        yield f"{_PLACES} {code}", table.take(pa.array(rows))


def _meet_at_places(known: Known, brought: Sequence[pa.Table]) -> tuple[Numbers, Tables]:
    """Which messages were only passed on, and those that share a place with others."""
    table = pa.concat_tables(brought)
    names = [*SCHEMAS[_STORED].names, AT]
    events = CaptureEvents({_STORED: table.select(names)})
    sends = with_groups(events.columns(_STORED), known.named.groups)
    dropped, shared = alike_elsewhere(sends)
    return numbers_of(sends)[dropped], handed_on(sends, shared)


def _history(known: Known, told: Sequence[_First], met: Sequence[tuple[Numbers, Tables]]) -> Known:
    known.take([*(tables for each in told for tables in each.tables), *(tables for _, tables in met)])
    known.dropped = np.sort(np.concatenate([known.dropped, *(dropped for dropped, _ in met)]))
    known.fallen = fallen_of(each.fallen for each in told)
    for each in told:
        known.pairs.add(each.pairs)
    known.answers = answers_of(known.capture.file, [each.answers for each in told])
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for each in told:
        for code, (unanswered, own) in each.waits.items():
            known.waits.setdefault(code, _Waits()).unanswered += unanswered
            counts[code].update(own)
    for code, found in known.waits.items():
        found.answered = counts[code].total()
        ranks = {rank_of(percent, found.answered) for percent in PERCENTS} if found.answered else ()
        found.ranks = Ranks.of(counts[code], ranks)
    frames = with_groups(CaptureEvents(_with(known.rare, known.tables)).columns(*FRAMES), known.named.groups)
    known.history = history_of(known.named, frames, named_learners(known.options.learners))
    return known


# ---- what tells the ends of logs -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Second:
    tables: list[Tables]
    waits: dict[int, Numbers]
    steps: dict[str, Steps]


def _second(known: Known, number: int, part: Events) -> Said:
    assert known.history is not None
    events = CaptureEvents(numbered(number, part))
    sends = _sends(known, events)
    tables = [handed_on(sends, of_logs(sends, known.history.offices))]
    if known.fallen:
        frames = with_groups(events.columns(*FRAMES), known.named.groups)
        tables.append(handed_on(frames, of_recounts(frames, known.fallen)))
    if any(each.named() for each in known.history.learners.values()):
        reports = events.columns(ObservationKind.REPORT)
        tables.append(handed_on(reports, np.arange(len(reports))))
    wanted = {code: known.waits[code].ranks.wanted(waited) for code, (_, waited) in waits(events).items()}
    return Said(_Second(tables, wanted, record_steps(sends)))


def _given(known: Known, told: Sequence[_Second], _: Sequence[Any]) -> Known:
    known.take(tables for each in told for tables in each.tables)
    for code, own in sorted(known.waits.items()):
        parts = [each.waits[code] for each in told if code in each.waits]
        found = own.ranks.found(np.concatenate([np.zeros(0, np.int64), *parts]))
        shown = [found.get(rank_of(percent, own.answered)) for percent in PERCENTS]
        known.latencies.append(latency(known.capture.file, code, own.unanswered, own.answered, shown))
    known.records = longest_of(each.steps for each in told)
    stretches = Counter(name for each in told for name in each.steps)
    known.cut = {name for name, count in stretches.items() if count > 1}
    joined = known.joined()
    known.given = joined.given
    headers = joined.frames.take(np.flatnonzero(joined.frames.are(*RUNS)))
    known.replicated = {*zip(*(headers.coded(each).listed() for each in ("group", "epoch")), strict=True)}
    known.borders = borders_of(known.named.rows, known.given.history.tenures)
    return known


# ---- the order of messages on connections that are cut ---------------------------------------------


def _between(known: Known, number: int, part: Events) -> Said:
    assert known.given is not None
    sends = _sends(known, CaptureEvents(numbered(number, part)))
    connection = sends.coded("connection")
    own = sends.take(np.flatnonzero(connection.where(*known.cut)))
    own = with_epochs(own, known.given.history.offices)
    names = own.coded("connection")
    return Said(
        None,
        {f"{_ORDER} {names.values[code]}": requested(own.take(rows)) for code, rows in split(names.codes)},
    )


def _meet_in_order(_: Known, brought: Sequence[Requested]) -> dict[LogThere, Behind]:
    return falls_behind(together(brought))


def _ordered(known: Known, _: Sequence[None], met: Sequence[dict[LogThere, Behind]]) -> Known:
    assert known.given is not None
    known.given.behind = {log: behind for each in met for log, behind in each.items()}
    return known


# ---- the verdicts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Third:
    judged: PartFindings
    walked: PartFindings
    overlaps: list[Overlap]
    tables: list[Tables]


def _part_of(known: Known, number: int, part: Events) -> Judged:
    """A part, joined to what is known."""
    assert known.given is not None
    events = CaptureEvents(numbered(number, part))
    frames = with_groups(events.columns(*FRAMES), known.named.groups)
    sends = with_epochs(_sends(known, events), known.given.history.offices)
    given = known.given
    return Judged(events, [], sends, frames, given, given.listed, [given.sends(sends)])


def _third(known: Known, number: int, part: Events) -> Said:
    joined = _part_of(known, number, part)
    messages = joined.tables[0]
    streams = stream_judges(joined.listed)
    span = _span(known)
    judged = add_up(streams.of(each) for each in (joined.replication, messages) if len(each))
    for found in judged.values():
        found.renumber(numbers_of(joined.sends))
    told = _Third(
        judged,
        add_up(of_connections(walk_replication(joined.replication, joined.groups))),
        overlaps(known.capture.file, joined),
        [
            handed_on(joined.frames, of_story(joined.frames, known.borders, moments(joined.frames, span))),
            handed_on(joined.sends, of_stored(joined.sends, known.borders, moments(joined.sends, span))),
        ],
    )
    meetings = dict(_by_epoch(known, joined, cuts_of(joined.sends, messages.known["cut_to"])))
    if known.options.all_ack:
        frames = joined.frames
        for at, rows in _by(frames, frames.are(ObservationKind.REPORT, *RUNS), known.parts, "group"):
            meetings[f"{_CONFIRMS} {at}"] = _Brought(_CONFIRMS, handed_on(frames, rows))
    return Said(told, meetings)


def _span(known: Known) -> tuple[int, int]:
    return known.capture.first_time_ns or 0, known.capture.last_time_ns or 0


@dataclass(frozen=True, slots=True)
class _Brought:
    """What a part brings to a meeting: some frames, of messages what they are compared by, and from where on
    nothing is compared."""

    rule: str
    frames: Tables
    messages: pa.Table | None = None
    cuts: Ends = field(default_factory=dict)


def _by_epoch(known: Known, joined: Judged, cuts: Ends) -> Iterator[tuple[str, _Brought]]:
    """Transfers, and messages that they may hold, by group and masterEpoch."""
    frames, sends = joined.frames, joined.sends
    keys = "group", "epoch"
    held = sends.told_alike(sends.alike(*keys), lambda row: (row.group, row.epoch) in known.replicated)
    runs = dict(_by(frames, frames.are(ObservationKind.BATCH), known.parts, *keys))
    messages = dict(_by(sends, held.where(True), known.parts, *keys))
    for at in runs.keys() | messages.keys():
        carried, sent = (each.get(at, np.zeros(0, np.int64)) for each in (runs, messages))
        brought = _Brought(_RANGES, handed_on(frames, carried), in_short(sends, sent), cuts)
        yield f"{_RANGES} {at}", brought


def _by(events: Columns, wanted: Flags, parts: int, *names: str) -> Iterator[tuple[int, Rows]]:
    """The wanted ones of some events by what they have in common."""
    rows = np.flatnonzero(wanted)
    columns = [events.coded(name) for name in names]
    found: dict[int, list[Rows]] = defaultdict(list)
    for _, own in split(events.alike(*names)[rows]):
        common = " ".join(str(each.values[each.codes[rows[own[0]]]]) for each in columns)
        found[_crc(common, parts)].append(rows[own])
    for at, every in found.items():
        yield at, np.sort(np.concatenate(every))


def _meet(known: Known, brought: Sequence[_Brought]) -> PartFindings:
    """What rules say that compare connections."""
    assert known.given is not None
    tables = _with({}, gathered(each.frames for each in brought))
    frames = with_groups(CaptureEvents(tables).columns(*FRAMES), known.named.groups)
    streams = stream_judges(known.given.listed)
    if brought[0].rule == _CONFIRMS:
        found = [confirms_table(known.named.rows, frames)]
    else:
        sends = from_short([each.messages for each in brought if each.messages is not None])
        due = least_of([known.given.due, *(each.cuts for each in brought)])
        found = [ranges(frames), known.given.bodies(frames, sends, due)]
    return add_up(streams.of(table) for table in found if len(table))


def _judged(known: Known, told: Sequence[_Third], met: Sequence[PartFindings]) -> Known:
    known.take(tables for each in told for tables in each.tables)
    known.overlaps = added(overlap for each in told for overlap in each.overlaps)
    judged = [*(each.judged for each in told), *met]
    walked = [each.walked for each in told]
    learners = named_learners(known.options.learners)
    joined = known.joined()
    found = conclude(known.capture.file, joined, judged, walked, known.pairs, learners)
    known.findings, known.losses, known.stored = found.findings, found.losses, found.sends
    known.lost = found.lost
    if not known.losses:
        _tell(known, joined)
    return known


# ---- what was lost ---------------------------------------------------------------------------------


def _fourth(known: Known, number: int, part: Events) -> Said:
    sends = _sends(known, CaptureEvents(numbered(number, part)))
    return Said(handed_on(sends, known.lost.among(numbers_of(sends)).each))


def _with_losses(known: Known, told: Sequence[Tables], _: Sequence[Any]) -> Known:
    known.take(told)
    _tell(known, known.joined())
    return known


def _tell(known: Known, joined: Judged) -> None:
    judgement = Judgement(known.capture.file, joined, known.findings, known.losses, known.stored)
    judgement.lost = known.lost.among(numbers_of(joined.sends))
    result = result_of(known.capture, judgement, known.options)
    result.latencies, result.answers, result.overlaps = known.latencies, known.answers, known.overlaps
    known.result = result


SPREAD: Final = Spread(
    frequent=tuple(MANY),
    begin=_begin,
    rounds=(
        Round(_first, _history, _meet_at_places),
        Round(_second, _given),
        Round(_between, _ordered, _meet_in_order, due=lambda known: bool(known.cut)),
        Round(_third, _judged, _meet),
        Round(_fourth, _with_losses),
    ),
    result=lambda known: known.result,
)
