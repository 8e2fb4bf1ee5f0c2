"""Few events that are handed on tell of a capture what all of its events tell."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents, Columns
from replispec.replay.events.event_tables import Coded, Flags
from replispec.replay.events.kinds import of_kind
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.recounts import (
    Members,
    Recounts,
    Replicas,
    fallen_of,
    fallen_to,
    of_recounts,
)
from replispec.replay.events.rocketmq.stream_tables import (
    FRAMES,
    longest_of,
    longest_records,
    record_steps,
    told_epochs,
    with_epochs,
)
from replispec.replay.events.rocketmq.telling import of_logs
from replispec.replay.events.rocketmq.tenures import Offices, Tenure
from replispec.replay.events.tables import to_tables

GROUP = "set"
MEMBERS: Members = {GROUP: ["1", "2", "3"]}
MASTERS: Members = {GROUP: ["1"]}
SEEDS = range(40)
CONNECTIONS, FRAMES_OF_EACH = 8, 30
HERE, ELSEWHERE = "127.0.0.1:1", "127.0.0.1:2"


def of_group(rows: Sequence[Observation], *kinds: ObservationKind) -> Columns:
    found = CaptureEvents(to_tables(rows)).columns(*kinds)
    return found.having("group", Coded(np.zeros(len(found), np.int64), [GROUP]))


def parts_of(events: Columns, chance: random.Random) -> list[Columns]:
    """The events in parts of whole connections."""
    owner = np.array([chance.randrange(3) for _ in events.coded("connection").values], np.int64)
    codes = owner[events.coded("connection").codes]
    return [events.take(np.flatnonzero(codes == part)) for part in range(3)]


# ---- confirmOffsets that fall ----------------------------------------------------------------------


def connection(number: int, chance: random.Random) -> Iterator[Observation]:
    """A replication connection with small numbers, whose order within the capture is any."""
    name, master = f"connection {number}", f"127.0.0.1:{chance.randrange(2)}"
    orders = sorted(chance.sample(range(1, 10_000), FRAMES_OF_EACH))

    def row(kind: ObservationKind, direction: int, **told: object) -> Observation:
        order = orders.pop(0)
        return of_kind(
            kind, "capture", order, order, name, direction, order, 0, **({"address": master} | told)
        )

    if chance.random() < 0.98:
        yield row(ObservationKind.OPENED, 0)
    yield row(
        ObservationKind.HANDSHAKE, 0, broker_id=chance.randrange(1, 4), async_learner=chance.random() < 0.2
    )
    if chance.random() < 0.9:
        yield row(ObservationKind.ANSWER, 1, max_offset=chance.randrange(3), epochs=[])
    while orders:
        if chance.random() < 0.3:
            yield row(ObservationKind.REPORT, 0, max_offset=chance.randrange(12))
        else:
            kind = chance.choice((ObservationKind.BATCH, ObservationKind.HEARTBEAT))
            yield row(kind, 1, epoch=1, offset=chance.randrange(3), confirm_offset=chance.randrange(12))


def explained(frames: Columns, of: Columns) -> Flags:
    """Which falls of some connections the replicas of `of` explain."""
    return Recounts(frames, Replicas(of, MEMBERS, MASTERS, fallen_to(of))).explained()


def test_few_reports_explain_the_falls_that_all_explain() -> None:
    seen = set()
    for seed in SEEDS:
        chance = random.Random(seed)
        frames = of_group([row for each in range(CONNECTIONS) for row in connection(each, chance)], *FRAMES)
        whole = explained(frames, frames)
        parts = parts_of(frames, chance)
        fallen = fallen_of(fallen_to(part) for part in parts)
        places = [part.places[of_recounts(part, fallen)] for part in parts]
        rare = frames.are(ObservationKind.OPENED, ObservationKind.HANDSHAKE, ObservationKind.ANSWER)
        few = frames.take(np.flatnonzero(np.isin(frames.places, np.concatenate(places)) | rare))
        assert len(few) < len(frames)
        replicas = Replicas(few, MEMBERS, MASTERS, fallen)
        for part in parts:
            own = np.isin(frames.places, part.places)
            assert Recounts(part, replicas).explained().tolist() == whole[own].tolist(), seed
            seen |= {(flag, alone) for flag, alone in zip(whole[own], explained(part, part), strict=True)}
    assert {(True, False), (False, False), (True, True)} <= seen, "others explain some, and not all"


# ---- where brokers wrote ---------------------------------------------------------------------------


def offices(starts: Sequence[int]) -> dict[str, Offices]:
    """One broker is master in the first and the last of three epochs."""
    masters = {1: HERE, 2: ELSEWHERE, 3: HERE}
    tenures = {epoch: Tenure(each, each, 1, 1) for epoch, each in masters.items()}
    known = dict(zip(tenures, starts, strict=True))
    return {GROUP: Offices(tenures=tenures, starts=known, epochs=known)}


def messages(chance: random.Random) -> list[Observation]:
    """Many messages at few places: what lies between two starts of epochs is at no end of a connection."""
    rows = []
    places = chance.sample(range(60), 7)
    for order in range(1, 250):
        place = order, order, f"connection {chance.randrange(6)}", 0, order, 0
        told = {"offset": chance.choice(places), "address": chance.choice((HERE, ELSEWHERE))}
        rows.append(of_kind(ObservationKind.ACKNOWLEDGED, "capture", *place, **told))
    return rows[: chance.choice((8, 249))]


def test_few_messages_tell_the_epochs_that_all_tell() -> None:
    seen = set()
    for seed in SEEDS:
        chance = random.Random(seed)
        starts = [0, *sorted(chance.sample(range(1, 60), 2))]
        sends = of_group(messages(chance), ObservationKind.ACKNOWLEDGED)
        whole = told_epochs(sends, offices(starts), []).coded("epoch").listed()
        parts = parts_of(sends, chance)
        places = np.concatenate([part.places[of_logs(part, offices(starts))] for part in parts])
        known = offices(starts)
        told_epochs(sends.take(np.flatnonzero(np.isin(sends.places, places))), known, [])
        for part in parts:
            own = np.flatnonzero(np.isin(sends.places, part.places)).tolist()
            assert with_epochs(part, known).coded("epoch").listed() == [whole[at] for at in own], seed
            alone = told_epochs(part, offices(starts), []).coded("epoch").listed()
            seen.add(alone == [whole[at] for at in own])
    assert seen == {True, False}, "what others wrote matters somewhere"


def test_what_was_asked_before_messages_were_heard_is_asked_anew() -> None:
    known = offices([0, 10, 30])
    sends = of_group(messages(random.Random(1)), ObservationKind.ACKNOWLEDGED)
    before = with_epochs(sends, known).coded("epoch").listed()
    after = told_epochs(sends, known, []).coded("epoch").listed()
    assert after == told_epochs(sends, offices([0, 10, 30]), []).coded("epoch").listed() != before


# ---- how messages follow each other ----------------------------------------------------------------


def test_stretches_of_connections_tell_the_longest_record() -> None:
    """Also where it lies over a cut."""
    over_a_cut = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        sends = of_group(messages(chance), ObservationKind.ACKNOWLEDGED)
        cuts = np.array(sorted(chance.sample(range(1, len(sends)), 3)))
        part = np.searchsorted(cuts, np.arange(len(sends)), "right")
        steps = [record_steps(sends.take(np.flatnonzero(part == number))) for number in range(len(cuts) + 1)]
        chance.shuffle(steps)
        assert longest_of(steps) == longest_records(sends), seed
        alone = [longest_of([each]) for each in steps]
        whole = longest_records(sends)
        over_a_cut += whole != {name: max(each.get(name, 0) for each in alone) for name in whole}
    assert over_a_cut
