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
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from replispec.replay.engines.family import judged, judged_beside, spread_of_all
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.spark_events import COUNTS, read_events
from replispec.replay.engines.spark_files import keep, kept, shared
from replispec.replay.engines.spark_parts import (
    PASSED,
    Batches,
    CaptureParts,
    Parts,
    Passed,
    as_batch,
    from_bytes,
    numbers_in,
    passed,
    rows_in,
    spark_schema,
    squeezed,
    unsqueezed,
)
from replispec.replay.engines.spark_shares import PARTS_NAME, Folders
from replispec.replay.engines.spark_tasks import mapped
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.tables import Events, joined_events, no_events

OPTIONS_NAME, TASKS_NAME = "options", "tasks"
# One event that is rare costs as much as so many frequent ones: machines walk it.
FREQUENT_FOR_ONE = 8
RESULTS: pa.Schema = pa.schema(
    [pa.field("owner", pa.int32()), pa.field("result", pa.binary()), pa.field("round", pa.int32())]
)
Concluded = tuple[int, CaptureResult | None, int]
"""The number of a capture, what it comes to, and, where that is not known yet, the round that is next."""
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

    begun = mapped(rare.repartitionById(captures, "slot"), begin, spark_schema(RESULTS))
    found, going = _collected(begun)
    while going:
        number = min(going.values())
        own = {owner for owner, following in going.items() if following == number}
        tasks = [
            (each.number, part)
            for each in parts.captures.values()
            if each.number in own
            for part in range(each.count)
        ]
        keep(folders.passing / f"{TASKS_NAME}-{number}", tasks)
        more, later = _collected(_round(spark, folders, number, len(tasks), captures))
        found |= more
        going = {owner: following for owner, following in going.items() if owner not in own} | later
    names = {each.number: name for name, each in parts.captures.items()}
    results = {names[number]: result for number, result in found.items()}
    for name, each in parts.captures.items():
        if name not in results:
            results[name] = judged(each.row, no_events(), options)
    return results


def _collected(rows: DataFrame) -> tuple[dict[int, CaptureResult], dict[int, int]]:
    """The results of captures by their numbers, and the next rounds of those that have none yet."""
    found: dict[int, CaptureResult] = {}
    going: dict[int, int] = {}
    for row in rows.toArrow().to_pylist():
        if row["result"] is None:
            going[row["owner"]] = row["round"]
        else:
            found[row["owner"]] = unsqueezed(row["result"])
    return found, going


def _as_results(rows: Sequence[Concluded]) -> pa.RecordBatch:
    results = [None if result is None else squeezed(result) for _, result, _ in rows]
    columns = [owner for owner, _, _ in rows], results, [number for _, _, number in rows]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RESULTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULTS)


# ---- the beginning ---------------------------------------------------------------------------------


def _begun(folders: Folders, rows: Iterator[Passed]) -> Iterator[Concluded]:
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
    rare = joined_events(
        (ObservationKind(name), from_bytes(payload)) for _, _, name, payload in found if name != COUNTS
    )
    events += FREQUENT_FOR_ONE * sum(table.num_rows for table in rare.values())
    if spread is None or events <= options.events_together:
        yield owner, judged(own.row, read_events(folders.out, owner, range(own.count)), options), 0
        return
    keep(_beside(folders, owner), judged_beside(own.row, rare, options))
    known = spread.begin(own.row, rare, own.count, options)
    number = spread.following(known, 0)
    _keep_known(folders, own, number, known)
    yield owner, None, number


def _capture(folders: Folders, number: int) -> CaptureParts:
    parts: Parts = shared(folders.passing / PARTS_NAME)
    return next(each for each in parts.captures.values() if each.number == number)


def _known(folders: Folders, owner: int, number: int) -> Path:
    """Where that lies which is known of a capture before a round."""
    return folders.passing / f"known-{owner}-{number}"


def _keep_known(folders: Folders, own: CaptureParts, number: int, known: Any) -> None:
    """Let the tasks of a round read what is known of a capture, each part its piece where it is cut."""
    spread = spread_of_all()
    assert spread is not None
    cut = spread.rounds[number].cut
    if cut is not None:
        known, pieces = cut(known, own.count)
        for part, piece in enumerate(pieces):
            keep(_piece(folders, own.number, number, part), piece)
    known, aside = spread.apart(known)
    keep(_known(folders, own.number, number), known)
    keep(_aside(folders, own.number, number), aside)


def _beside(folders: Folders, owner: int) -> Path:
    """Where that lies which is told of a capture beside what is spread."""
    return folders.passing / f"beside-{owner}"


def _aside(folders: Folders, owner: int, number: int) -> Path:
    """Where that lies which parts are not told."""
    return folders.passing / f"aside-{owner}-{number}"


def _piece(folders: Folders, owner: int, number: int, part: int) -> Path:
    """Where that lies which one part is told before a round for which it is cut."""
    return folders.passing / f"known-{owner}-{number}-{part}"


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

    rows = mapped(passed(spark, tasks), ask, spark_schema(PASSED))
    if spread.rounds[number].meet is not None:
        rows = mapped(rows.repartitionById(tasks, "slot"), meet, spark_schema(PASSED))
    return mapped(rows.repartitionById(captures, "owner"), conclude, spark_schema(RESULTS))


def _asked(folders: Folders, number: int, at: int, tasks: int) -> Iterator[Passed]:
    """What one part says, and brings to meetings."""
    spread = spread_of_all()
    assert spread is not None
    owner, part = shared(folders.passing / f"{TASKS_NAME}-{number}")[at]
    is_cut = spread.rounds[number].cut is not None
    known = kept(_piece(folders, owner, number, part)) if is_cut else shared(_known(folders, owner, number))

    def read(each: int) -> Events:
        return read_events(folders.out, owner, range(each, each + 1))

    said = spread.rounds[number].of_part(known, part, read)
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


def _concluded(folders: Folders, number: int, rows: Iterator[Passed]) -> Iterator[Concluded]:
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
    known = spread.whole(kept(_known(folders, owner, number)), kept(_aside(folders, owner, number)))
    known = spread.rounds[number].together(known, told, met)
    result = spread.result(known)
    following = number + 1
    if result is not None:
        result.add(kept(_beside(folders, owner)))
    else:
        following = spread.following(known, following)
        _keep_known(folders, _capture(folders, owner), following, known)
    yield owner, result, following
