"""Captures judged on Spark: small ones by one task each, others spread over their parts.

The driver starts rounds and gets a result for each capture. All that tasks tell each other lies in the folder
`passing` or passes through Spark; no task is handed more because a capture is larger.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from replispec.replay.engines.family import judged, spread_of_all
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.spark_events import COUNTS, PARTS_NAME, Folders, read_events
from replispec.replay.engines.spark_parts import (
    PASSED,
    Batches,
    CaptureParts,
    Parts,
    Passed,
    as_batch,
    from_bytes,
    keep,
    kept,
    numbers_in,
    passed,
    rows_in,
    shared,
    spark_schema,
    squeezed,
    unsqueezed,
)
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.tables import joined_events, no_events

OPTIONS_NAME, TASKS_NAME = "options", "tasks"
RESULTS: pa.Schema = pa.schema([pa.field("owner", pa.int32()), pa.field("result", pa.binary())])
TOLD = "told"
"""What the rows that parts tell begin with; those that they bring to meetings begin with MEETING, and what a
meeting says with MET."""
MEETING, MET = "meeting", "met"


def judgements(
    spark: SparkSession, rare: DataFrame, folders: Folders, parts: Parts, options: Options
) -> dict[str, CaptureResult]:
    """What each capture comes to, by name; `rare`: what `observed` gives, which is run here.

    Captures without any event are judged here.
    """
    keep(folders.passing / OPTIONS_NAME, replace(options, compared=None))
    captures = max(1, len(parts.captures))

    def begin(batches: Batches) -> Batches:
        yield _as_results(list(_begun(folders, rows_in(batches))))

    begun = rare.repartitionById(captures, "slot").mapInArrow(begin, spark_schema(RESULTS))
    found, going = _collected(begun)
    spread = spread_of_all()
    for number in range(len(spread.rounds) if spread is not None else 0):
        if not going:
            break
        tasks = [
            (each.number, part)
            for each in parts.captures.values()
            if each.number in going
            for part in range(each.count)
        ]
        keep(folders.passing / f"{TASKS_NAME}-{number}", tasks)
        more, going = _collected(_round(spark, folders, number, len(tasks), captures))
        found |= more
    assert not going, "the last round has a result"
    names = {each.number: name for name, each in parts.captures.items()}
    results = {names[number]: result for number, result in found.items()}
    for name, each in parts.captures.items():
        if name not in results:
            results[name] = judged(each.row, no_events(), options)
    return results


def _collected(rows: DataFrame) -> tuple[dict[int, CaptureResult], set[int]]:
    """The results of captures by their numbers, and the captures that have none yet."""
    found: dict[int, CaptureResult] = {}
    going = set()
    for row in rows.toArrow().to_pylist():
        if row["result"] is None:
            going.add(row["owner"])
        else:
            found[row["owner"]] = unsqueezed(row["result"])
    return found, going


def _as_results(rows: Sequence[tuple[int, CaptureResult | None]]) -> pa.RecordBatch:
    owners = pa.array([owner for owner, _ in rows], pa.int32())
    results = [None if result is None else squeezed(result) for _, result in rows]
    return pa.RecordBatch.from_arrays([owners, pa.array(results, pa.binary())], schema=RESULTS)


# ---- the beginning ---------------------------------------------------------------------------------


def _begun(folders: Folders, rows: Iterator[Passed]) -> Iterator[tuple[int, CaptureResult | None]]:
    """The result of one capture when it is small, else None, and what is known is kept."""
    found = list(rows)
    if not found:
        return
    owner = found[0][1]
    assert all(each == owner for _, each, _, _ in found), "a partition is one capture"
    events = sum(unsqueezed(payload) for _, _, name, payload in found if name == COUNTS)
    options: Options = shared(folders.passing / OPTIONS_NAME)
    own = _capture(folders, owner)
    spread = spread_of_all()
    if spread is None or events <= options.events_together:
        yield owner, judged(own.row, read_events(folders.out, owner, range(own.count)), options)
        return
    rare = joined_events(
        (ObservationKind(name), from_bytes(payload)) for _, _, name, payload in found if name != COUNTS
    )
    keep(_known(folders, owner, 0), spread.begin(own.row, rare, own.count, options))
    yield owner, None


def _capture(folders: Folders, number: int) -> CaptureParts:
    parts: Parts = shared(folders.passing / PARTS_NAME)
    return next(each for each in parts.captures.values() if each.number == number)


def _known(folders: Folders, owner: int, number: int) -> Path:
    """Where that lies which is known of a capture before a round."""
    return folders.passing / f"known-{owner}-{number}"


# ---- the rounds ------------------------------------------------------------------------------------


def _round(spark: SparkSession, folders: Folders, number: int, tasks: int, captures: int) -> DataFrame:
    """One round for all parts that still need it; rows as RESULTS."""
    spread = spread_of_all()
    assert spread is not None

    def ask(batches: Batches) -> Batches:
        for at in numbers_in(batches):
            yield as_batch(list(_asked(folders, number, at, tasks)))

    def meet(batches: Batches) -> Batches:
        yield as_batch(list(_met(folders, number, rows_in(batches))))

    def conclude(batches: Batches) -> Batches:
        yield _as_results(list(_concluded(folders, number, rows_in(batches))))

    rows = passed(spark, tasks).mapInArrow(ask, spark_schema(PASSED))
    if spread.rounds[number].meet is not None:
        rows = rows.repartitionById(tasks, "slot").mapInArrow(meet, spark_schema(PASSED))
    return rows.repartitionById(captures, "owner").mapInArrow(conclude, spark_schema(RESULTS))


def _asked(folders: Folders, number: int, at: int, tasks: int) -> Iterator[Passed]:
    """What one part says, and brings to meetings."""
    spread = spread_of_all()
    assert spread is not None
    owner, part = shared(folders.passing / f"{TASKS_NAME}-{number}")[at]
    known = shared(_known(folders, owner, number))
    said = spread.rounds[number].of_part(known, part, read_events(folders.out, owner, range(part, part + 1)))
    yield at, owner, f"{TOLD} {part:08d}", squeezed(said.told)
    for name, what in said.meetings.items():
        yield (
            zlib.crc32(f"{owner} {name}".encode()) % tasks,
            owner,
            f"{MEETING} {name}",
            squeezed((part, what)),
        )


def _met(folders: Folders, number: int, rows: Iterator[Passed]) -> Iterator[Passed]:
    """What is told, as it came, and what the meetings of this task say."""
    spread = spread_of_all()
    assert spread is not None
    meet = spread.rounds[number].meet
    assert meet is not None
    meetings: dict[tuple[int, str], list[bytes]] = defaultdict(list)
    for row in rows:
        _, owner, name, payload = row
        if name.startswith(TOLD):
            yield row
        else:
            meetings[owner, name].append(payload)
    for (owner, name), payloads in sorted(meetings.items()):
        brought = sorted(map(unsqueezed, payloads), key=lambda each: int(each[0]))
        said = meet(shared(_known(folders, owner, number)), [what for _, what in brought])
        yield 0, owner, f"{MET} {name}", squeezed(said)


def _concluded(
    folders: Folders, number: int, rows: Iterator[Passed]
) -> Iterator[tuple[int, CaptureResult | None]]:
    """What one capture comes to by all that was told in a round."""
    spread = spread_of_all()
    assert spread is not None
    found = sorted((owner, name, payload) for _, owner, name, payload in rows)
    if not found:
        return
    owner = found[0][0]
    assert found[-1][0] == owner, "a partition is one capture"
    told = [unsqueezed(payload) for _, name, payload in found if name.startswith(TOLD)]
    met = [unsqueezed(payload) for _, name, payload in found if not name.startswith(TOLD)]
    known = spread.rounds[number].together(kept(_known(folders, owner, number)), told, met)
    result = spread.result(known)
    if result is None:
        keep(_known(folders, owner, number + 1), known)
    yield owner, result
