"""One replication connection, judged a stretch at a time, comes to what it comes to as a whole."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from replispec.replay.events.capture_events import Columns
from replispec.replay.events.event_tables import EventTable
from replispec.replay.events.kinds import of_kind
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.recounts import (
    Ahead,
    Around,
    Before,
    Members,
    Recounts,
    Replicas,
    fallen_between,
    fallen_of,
    fallen_to,
    link_ends,
)
from replispec.replay.events.rocketmq.stream_events import name_events
from replispec.replay.events.rocketmq.stream_tables import FRAMES, ToldOn, replication_table
from replispec.replay.judges.machines import of_connections
from replispec.replay.judges.parts import add_up
from replispec.replay.judges.rocketmq.judge import stream_judges
from replispec.replay.judges.streams import Carried
from replispec.replay.machines.rocketmq.replication_walks import (
    StretchWalk,
    are_mixed,
    sides_taken,
    walk_replication,
)
from tests.replay.test_parts import plain
from tests.replay.test_telling import GROUP, MASTERS, of_group

NAME = "connection"
# Whoever may be counted is on this connection.
MEMBERS: Members = {GROUP: ["1", "2"]}
SEEDS = range(24)


def connection(chance: random.Random) -> Iterator[Observation]:
    """A replication connection of small numbers, most of them in order, with lost bytes now and then."""
    order, end, told, batch = 0, 0, 1, chance.choice((2, 12))
    lost, mixed = chance.choice((0.0, 0.02)), chance.random() < 0.1

    def row(kind: ObservationKind, direction: int, **more: object) -> Observation:
        nonlocal order
        order += 1
        if mixed and chance.random() < 0.05:
            direction = 1 - direction
        return of_kind(kind, "c", order, order, NAME, direction, order, order, address="127.0.0.1:1", **more)

    if chance.random() < 0.9:
        yield row(ObservationKind.OPENED, 0)
    for _ in range(chance.randrange(60, 200)):
        draw = chance.random()
        if order < 2 or draw < 0.01:
            yield row(ObservationKind.HANDSHAKE, 0, message="HaHandshakeId", broker_id=2)
            entries = [{"epoch": told, "start_offset": 0}]
            yield row(ObservationKind.ANSWER, 1, message="HaHandshakeAnswer", max_offset=end, epochs=entries)
        elif draw < 0.3:
            reported = end if chance.random() < 0.8 else chance.randrange(12)
            yield row(ObservationKind.REPORT, 0, message="HaReport", max_offset=reported)
        elif draw < 0.3 + lost:
            yield row(ObservationKind.GAP, chance.randrange(2))
        else:
            told = max(told, chance.choice((told, told, told, told, told, 1, 2, 3)))
            size = chance.choice((0, 0, batch))
            kind = ObservationKind.BATCH if size else ObservationKind.HEARTBEAT
            header = {"message": "HaTransferHeader", "offset": end, "body_size": size, "epoch": told}
            start = chance.choice((0, 0, 0, 4))
            confirm = end if chance.random() < 0.7 else chance.randrange(12)
            yield row(kind, 1, **header, epoch_start_offset=start, confirm_offset=confirm)
            end += size if chance.random() < 0.98 else 1


def cut(frames: Columns, chance: random.Random) -> list[Columns]:
    borders = sorted({0, len(frames), *chance.sample(range(len(frames)), chance.randrange(1, 12))})
    return [frames.take(np.arange(first, behind)) for first, behind in pairwise(borders)]


def looked_through(parts: list[Columns], replicas: Replicas) -> list[Ahead]:
    found = [Ahead()]
    for part in reversed(parts):
        found.append(Recounts(part, replicas, {NAME: Around(ahead=found[-1])}).ahead(NAME))
    return found[-2::-1]


def tables_of(parts: list[Columns], replicas: Replicas) -> list[EventTable]:
    before, earlier, found = Before(), {NAME: ToldOn()}, []
    for part, ahead in zip(parts, looked_through(parts, replicas), strict=True):
        recounts = Recounts(part, replicas, {NAME: Around(before, ahead)})
        found.append(replication_table(part, recounts, earlier))
        before = recounts.before(NAME)
    return found


def listed(*tables: EventTable) -> list[dict[str, object]]:
    return [vars(table.event(row)) for table in tables for row in range(len(table))]


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Columns, list[Columns], Replicas]]:
    found = []
    for seed in SEEDS:
        chance = random.Random(seed)
        frames = of_group([*connection(chance)], *FRAMES)
        replicas = Replicas(frames, MEMBERS, MASTERS, fallen_to(frames))
        found.append((frames, cut(frames, chance), replicas))
    return found


Drawn = list[tuple[Columns, list[Columns], Replicas]]


def test_stretches_have_the_events_of_the_whole(drawn: Drawn) -> None:
    seen: Counter[str] = Counter()
    for frames, parts, replicas in drawn:
        whole = listed(replication_table(frames, Recounts(frames, replicas)))
        assert listed(*tables_of(parts, replicas)) == whole
        # What lies beyond the cut matters somewhere.
        alone = listed(*(replication_table(part, Recounts(part, replicas)) for part in parts))
        for one, other in zip(alone, whole, strict=True):
            seen.update(name for name in one if repr(one[name]) != repr(other[name]))
    assert {"log_end", "recounted", "known_starts"} <= seen.keys()


def test_what_confirm_offsets_fell_to_is_told_by_the_ends_of_stretches(drawn: Drawn) -> None:
    seen = 0
    for frames, parts, _ in drawn:
        own = [fallen_to(part) for part in parts]
        found = fallen_of([*own, *fallen_between([[link_ends(part)[NAME] for part in parts]])])
        whole = fallen_to(frames)
        assert {key: each.tolist() for key, each in found.items()} == {
            key: each.tolist() for key, each in whole.items()
        }
        seen += sum(map(len, whole.values())) - sum(map(len, fallen_of(own).values()))
    assert seen > 0, "something fell between two stretches"


def test_rules_and_machines_walk_over_the_cuts(drawn: Drawn) -> None:
    verdicts: Counter[object] = Counter()
    groups = name_events([]).groups
    for frames, parts, replicas in drawn[::4]:
        table = replication_table(frames, Recounts(frames, replicas))
        streams, carried = stream_judges([]), Carried()
        whole = add_up([streams.of(table), *of_connections(walk_replication(table, groups))])
        shakes = frames.rows(np.flatnonzero(frames.are(ObservationKind.HANDSHAKE)))
        is_mixed = are_mixed(sides_taken(table.names, table.known["direction"]))
        walk = StretchWalk(groups, shakes[0] if shakes else None, is_mixed=is_mixed)
        found = []
        for each in tables_of(parts, replicas):
            found.append(streams.of(each, carried))
            walk.add(each)
        assert plain(add_up([*found, *of_connections(walk.walked())])) == plain(whole)
        verdicts.update(verdict for part in whole.values() for verdict in part.counts)
    assert len(verdicts) >= 3
