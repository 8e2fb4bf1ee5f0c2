"""How judging a capture of Apache RocketMQ is spread over parts of its connections.

Names, groups and lives are told by what is rare. Then, round by round: the history (from few headers), runs
and ends of logs (from few messages), the verdicts (from every frame and message), what is lost, and at last
what is asked of whole broker sets: each part has some of these. Messages
with one place in a log meet, and messages and transfers of one masterEpoch: these are compared between
connections. The messages of one connection may be in several parts, each a stretch of it: then the order in
which they were requested meets before they are judged. All other events of a connection are in one part.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.broker_sets import BrokerSets, Ending, SetsPiece, pieces_of
from replispec.replay.engines.rocketmq.known import STORED, Aside, Known, Waits, sends_of, with_tables
from replispec.replay.engines.rocketmq.links import judged_link, links_of, rare_on
from replispec.replay.engines.rocketmq.meetings import (
    Met,
    again_by_block,
    again_by_epoch,
    between_blocks,
    by_epoch,
    by_group,
    meet,
)
from replispec.replay.engines.rocketmq.queues import about, judged_topics, topics_of
from replispec.replay.engines.spread import Read, Round, Said, Spread
from replispec.replay.events.capture_events import MANY, CaptureEvents, Columns
from replispec.replay.events.event_tables import Numbers, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.rocketmq.cut_logs import CarriedStretch, extents_of, stretches_of
from replispec.replay.events.rocketmq.falls_in_order import (
    Behind,
    LogThere,
    Requested,
    falls_behind,
    requested,
    together,
)
from replispec.replay.events.rocketmq.history import Named, history_of
from replispec.replay.events.rocketmq.ranges import Epoch
from replispec.replay.events.rocketmq.recounts import (
    Fallen,
    LinkEnds,
    fallen_between,
    fallen_of,
    fallen_to,
    link_ends,
    of_recounts,
)
from replispec.replay.events.rocketmq.stored import Ends, cuts_of, least_of, written_again
from replispec.replay.events.rocketmq.stream_events import Judged, name_events
from replispec.replay.events.rocketmq.stream_tables import (
    FRAMES,
    RUNS,
    Steps,
    longest_of,
    record_steps,
    with_epochs,
    with_groups,
)
from replispec.replay.events.rocketmq.telling import (
    AT,
    Tables,
    alike_elsewhere,
    borders_of,
    handed_on,
    numbered,
    numbers_of,
    of_history,
    of_logs,
    of_stored,
    of_story,
)
from replispec.replay.events.tables import SCHEMAS, Events
from replispec.replay.judges.machines import of_connections, of_pairs
from replispec.replay.judges.parts import PartFinding, PartFindings, add_up
from replispec.replay.judges.rocketmq.judge import lost_in, named_learners, stream_judges
from replispec.replay.machines.rocketmq.findings import machine_walks
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.replay.report.model import Overlap
from replispec.replay.report.ranks import Ranks, counted
from replispec.replay.report.rocketmq.answers import Counts, answers_of, counted_answers
from replispec.replay.report.rocketmq.latencies import PERCENTS, latency, rank_of, waits
from replispec.replay.report.rocketmq.log_ends import moments
from replispec.replay.report.rocketmq.overlaps import added, overlaps
from replispec.replay.report.summary import CaptureRow

_LISTS: Final = ("durations_ns", "answer_codes", "remarks")
_PLACES, _ORDER = "places", "order"


def _begin(capture: CaptureRow, rare: Events, parts: int, options: Options) -> Known:
    events = {kind: table for kind, table in rare.items() if kind not in MANY}
    capture = replace(capture, commands_unread=events[ObservationKind.UNDECODABLE].num_rows)
    named = name_events(CaptureEvents(events).few)
    return Known(capture, options, parts, named.groups, Aside(events, named.rows), topics=topics_of(events))


# ---- topics with logical queues --------------------------------------------------------------------


def _queues(known: Known, number: int, read: Read) -> Said:
    return Said(about(known.topics, read(number)))


def _queues_judged(known: Known, told: Sequence[Events], _: Sequence[Any]) -> Known:
    known.aside.queues = judged_topics(known.capture.file, known.aside.rare, told)
    known.topics = ()
    return known


# ---- what tells the history ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _First:
    """What a part tells first."""

    tables: list[Tables]
    pairs: PartFinding
    answers: Counts
    waits: dict[int, tuple[int, Counter[int]]]
    fallen: Fallen
    links: dict[str, LinkEnds]


def _first(known: Known, number: int, read: Read) -> Said:
    events = CaptureEvents(numbered(number, read(number)))
    frames = with_groups(events.columns(*FRAMES), known.groups)
    sends = with_groups(events.columns(STORED), known.groups)
    told = _First(
        [handed_on(frames, of_history(frames)), _unanswered(events)],
        of_pairs(events),
        counted_answers(events),
        {code: (unanswered, counted(waited)) for code, (unanswered, waited) in waits(events).items()},
        fallen_to(frames),
        link_ends(frames),
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
    names = [*SCHEMAS[STORED].names, AT]
    events = CaptureEvents({STORED: table.select(names)})
    sends = with_groups(events.columns(STORED), known.groups)
    dropped, shared = alike_elsewhere(sends)
    return numbers_of(sends)[dropped], handed_on(sends, shared)


def _history(known: Known, told: Sequence[_First], met: Sequence[tuple[Numbers, Tables]]) -> Known:
    known.take([*(tables for each in told for tables in each.tables), *(tables for _, tables in met)])
    known.dropped = np.sort(np.concatenate([known.dropped, *(dropped for dropped, _ in met)]))
    known.links = links_of([each.links for each in told])
    known.rare_on_links = rare_on(known.links, known.aside.rare)
    between = fallen_between([ends for _, ends in own] for own in known.links.values())
    known.fallen = fallen_of(chain((each.fallen for each in told), between))
    for each in told:
        known.aside.pairs.add(each.pairs)
    known.aside.answers = answers_of(known.capture.file, [each.answers for each in told])
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for each in told:
        for code, (unanswered, own) in each.waits.items():
            known.waits.setdefault(code, Waits()).unanswered += unanswered
            counts[code].update(own)
    for code, found in known.waits.items():
        found.answered = counts[code].total()
        ranks = {rank_of(percent, found.answered) for percent in PERCENTS} if found.answered else ()
        found.ranks = Ranks.of(counts[code], ranks)
    frames = with_groups(
        CaptureEvents(with_tables(known.aside.rare, known.aside.tables)).columns(*FRAMES), known.groups
    )
    named = Named(known.aside.rows, known.groups)
    known.history = history_of(named, frames, named_learners(known.options.learners))
    return known


# ---- what tells the ends of logs -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Second:
    tables: list[Tables]
    waits: dict[int, Numbers]
    steps: dict[str, Steps]
    carried: dict[Epoch, list[CarriedStretch]]


def _second(known: Known, number: int, read: Read) -> Said:
    assert known.history is not None
    events = CaptureEvents(numbered(number, read(number)))
    sends = sends_of(known, events)
    tables = [handed_on(sends, of_logs(sends, known.history.offices))]
    frames = with_groups(events.columns(*FRAMES), known.groups)
    if known.fallen:
        tables.append(handed_on(frames, of_recounts(frames, known.fallen)))
    if any(each.named() for each in known.history.learners.values()):
        reports = events.columns(ObservationKind.REPORT)
        tables.append(handed_on(reports, np.arange(len(reports))))
    wanted = {code: known.waits[code].ranks.wanted(waited) for code, (_, waited) in waits(events).items()}
    return Said(_Second(tables, wanted, record_steps(sends), stretches_of(frames, known.block)))


def _given(known: Known, told: Sequence[_Second], _: Sequence[Any]) -> Known:
    known.take(tables for each in told for tables in each.tables)
    for code, own in sorted(known.waits.items()):
        parts = [each.waits[code] for each in told if code in each.waits]
        found = own.ranks.found(np.concatenate([np.zeros(0, np.int64), *parts]))
        shown = [found.get(rank_of(percent, own.answered)) for percent in PERCENTS]
        known.aside.latencies.append(latency(known.capture.file, code, own.unanswered, own.answered, shown))
    known.records = longest_of(each.steps for each in told)
    stretches = Counter(name for each in told for name in each.steps)
    known.cut = {name for name, count in stretches.items() if count > 1}
    joined = known.joined()
    known.given = joined.given
    learners = named_learners(known.options.learners)
    walks = [*machine_walks(joined.for_machines(learners), joined.groups, learners)]
    known.aside.sets = BrokerSets.of(joined, walks, known.parts)
    headers = joined.frames.take(np.flatnonzero(joined.frames.are(*RUNS)))
    known.replicated = {*zip(*(headers.coded(each).listed() for each in ("group", "epoch")), strict=True)}
    known.written_again = {*written_again(joined.sends)}
    known.extents = extents_of((each.carried for each in told), known.block)
    known.borders = borders_of(known.aside.rows, known.given.history.tenures)
    # But for one rule only who judges the sets asks for what is rare, and is told it.
    known.rows, known.aside.rows = known.aside.rows if known.options.all_ack else [], []
    return known


# ---- the order of messages on connections that are cut ---------------------------------------------


def _between(known: Known, number: int, read: Read) -> Said:
    assert known.given is not None
    sends = sends_of(known, CaptureEvents(numbered(number, read(number))))
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
    cuts: Ends
    judged: PartFindings
    walked: PartFindings
    overlaps: list[Overlap]
    tables: list[Tables]


def _part_of(known: Known, number: int, part: Events) -> Judged:
    """A part, joined to what is known."""
    assert known.given is not None
    events = CaptureEvents(numbered(number, part))
    frames = with_groups(events.columns(*FRAMES), known.groups)
    sends = with_epochs(sends_of(known, events), known.given.history.offices)
    return Judged.of(events, [], sends, frames, known.given, known.given.listed, [])


def _third(known: Known, number: int, read: Read) -> Said:
    joined = _part_of(known, number, read(number))
    messages = joined.given.sends(joined.sends)
    streams = stream_judges(joined.listed)
    span = _span(known)
    whole = joined.frames
    if known.links:
        whole = whole.take(np.flatnonzero(~whole.coded("connection").where(*known.links)))
    replication = joined.given.replication(whole)
    links = [judged_link(known, name, read) for name, own in known.links.items() if own[0][0] == number]
    judged = add_up(streams.of(each) for each in (replication, messages) if len(each))
    for found in judged.values():
        found.renumber(numbers_of(joined.sends))
    cuts = cuts_of(joined.sends, messages.known["cut_to"])
    told = _Third(
        cuts,
        add_up([judged, *(found for found, _ in links)]),
        add_up(
            [*of_connections(walk_replication(replication, joined.groups)), *(walked for _, walked in links)]
        ),
        overlaps(known.capture.file, joined),
        [
            handed_on(joined.frames, of_story(joined.frames, known.borders, moments(joined.frames, span))),
            handed_on(joined.sends, of_stored(joined.sends, known.borders, moments(joined.sends, span))),
        ],
    )
    meetings = dict(by_epoch(known, joined, cuts))
    if known.options.all_ack:
        meetings |= by_group(known, joined)
    return Said(told, meetings)


def _span(known: Known) -> tuple[int, int]:
    return known.capture.first_time_ns or 0, known.capture.last_time_ns or 0


def _judged(known: Known, told: Sequence[_Third], met: Sequence[Met]) -> Known:
    known.take(tables for each in told for tables in each.tables)
    known.aside.overlaps = added(overlap for each in told for overlap in each.overlaps)
    known.aside.judged = [*(each.judged for each in told), *(each.judged for each in met)]
    known.aside.judged.append(between_blocks(known, met))
    known.aside.walked = [each.walked for each in told]
    known.cuts = least_of(each.cuts for each in told)
    _compare(known, met)
    known.recut = {epoch for epoch in known.aside.bodies if epoch in known.cuts}
    return _added_up(known)


# ---- bodies of epochs of which more had to be known ------------------------------------------------


def _recut(known: Known, number: int, read: Read) -> Said:
    return Said(None, dict(again_by_block(known, _part_of(known, number, read(number)))))


def _after_cuts(known: Known, _: Sequence[None], met: Sequence[Met]) -> Known:
    known.aside.bodies |= {epoch: [] for epoch in known.recut}
    known.differing = {*known.differing} - {*known.recut}
    known.recut = ()
    _compare(known, met)
    return _added_up(known)


def _differing(known: Known, number: int, read: Read) -> Said:
    return Said(None, dict(again_by_epoch(known, _part_of(known, number, read(number)))))


def _after_all(known: Known, _: Sequence[None], met: Sequence[Met]) -> Known:
    known.aside.bodies |= {epoch: [] for epoch in known.differing}
    known.differing = ()
    _compare(known, met)
    return _added_up(known)


def _compare(known: Known, met: Iterable[Met]) -> None:
    """What bodies come to, by epochs that are compared in blocks."""
    for each in met:
        if each.epoch is not None:
            known.aside.bodies.setdefault(each.epoch, []).append(each.bodies)
            if each.differs:
                known.differing = {*known.differing, each.epoch}


def _added_up(known: Known) -> Known:
    """What parts of connections come to, where all of it is known, and which messages they call lost."""
    if known.recut or known.differing:
        return known
    own = known.aside
    own.judged = [add_up([*own.judged, *own.walked, *chain.from_iterable(own.bodies.values())])]
    own.walked, own.bodies = [], {}
    known.lost = lost_in(own.judged)
    return known


# ---- what was lost ---------------------------------------------------------------------------------


def _fourth(known: Known, number: int, read: Read) -> Said:
    sends = sends_of(known, CaptureEvents(numbered(number, read(number))))
    return Said(handed_on(sends, known.lost.among(numbers_of(sends)).each))


def _with_losses(known: Known, told: Sequence[Tables], _: Sequence[Any]) -> Known:
    known.take(told)
    return known


# ---- broker sets -----------------------------------------------------------------------------------


def _cut(known: Known, _: int) -> tuple[Ending, Sequence[SetsPiece]]:
    assert known.given is not None
    sends, frames = known.frequent()
    sends = with_epochs(sends, known.given.history.offices)
    own = known.aside
    (found,) = own.judged
    pieces = pieces_of(own.sets, known.capture, known.options, sends, frames, found)
    ending = Ending(known.capture, own.pairs, own.latencies, own.answers, own.overlaps, own.queues)
    return ending, pieces


def _fifth(piece: SetsPiece, _: int, __: Read) -> Said:
    return Said(piece.judged())


def _apart(known: Known | Ending) -> tuple[Known | Ending, Aside]:
    return known.apart() if isinstance(known, Known) else (known, Aside())


def _whole(known: Known | Ending, aside: Aside) -> Known | Ending:
    return replace(known, aside=aside) if isinstance(known, Known) else known


def _ended(ending: Ending, told: Sequence[CaptureResult], _: Sequence[Any]) -> Ending:
    ending.add(told)
    return ending


SPREAD: Final = Spread(
    frequent=tuple(MANY),
    begin=_begin,
    rounds=(
        Round(_queues, _queues_judged, due=lambda known: bool(known.topics)),
        Round(_first, _history, _meet_at_places),
        Round(_second, _given),
        Round(_between, _ordered, _meet_in_order, due=lambda known: bool(known.cut)),
        Round(_third, _judged, meet),
        Round(_recut, _after_cuts, meet, due=lambda known: bool(known.recut)),
        Round(_differing, _after_all, meet, due=lambda known: bool(known.differing)),
        Round(_fourth, _with_losses, due=lambda known: len(known.lost.each) > 0),
        Round(_fifth, _ended, cut=_cut),
    ),
    result=lambda known: known.result if isinstance(known, Ending) else None,
    apart=_apart,
    whole=_whole,
)
