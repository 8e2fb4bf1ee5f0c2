"""How long requests waited for their answers: percentiles by request code, of one capture."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.event_tables import Numbers, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.report.model import Latency
from replispec.wire.rocketmq.codes import REQUEST_CODE_NAMES, RESPONSE_CODE_NAMES

PERCENTS: Final = (50, 95, 99, 100)


def latencies(file: str, events: CaptureEvents) -> list[Latency]:
    """The latency of every request code in one capture, by code."""
    found = []
    for code, (unanswered, waited) in waits(events).items():
        ascending = np.sort(waited)
        told = [_percentile(ascending, percent) for percent in PERCENTS]
        found.append(latency(file, code, unanswered, len(waited), told))
    return sorted(found, key=lambda each: each.code)


def waits(events: CaptureEvents) -> dict[int, tuple[int, Numbers]]:
    """By request code how many requests were not answered, and how long the others waited."""
    rows = events.columns(ObservationKind.LATENCY)
    codes = rows.coded("code")
    owners, waited = elements(rows.table.column("durations_ns"))
    return {
        codes.values[code]: (
            int(rows.numbers("unanswered").numbers[own].sum()),
            waited[codes.codes[owners] == code],
        )
        for code, own in split(codes.codes)
        if codes.values[code] is not None
    }


def latency(file: str, code: int, unanswered: int, answered: int, told: Sequence[int | None]) -> Latency:
    """A row of the report; `told`: the waits at PERCENTS."""
    p50, p95, p99, longest = told
    return Latency(file, code, request_name(code), answered, unanswered, p50, p95, p99, longest)


def elements(lists: pa.ChunkedArray) -> tuple[Rows, Numbers]:
    """All numbers in a column of lists, and the row of each."""
    column = lists.combine_chunks()
    sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    values = np.asarray(pc.list_flatten(column)).astype(np.int64)
    return np.repeat(np.arange(len(sizes)), sizes), values


def request_name(code: int) -> str:
    """The name of a request code, all of them where releases differ; empty for a code without one."""
    return " or ".join(each.name for each in REQUEST_CODE_NAMES if each.number == code)


def response_name(code: int) -> str:
    """The same of a response code."""
    return " or ".join(each.name for each in RESPONSE_CODE_NAMES if each.number == code)


def rank_of(percent: int, count: int) -> int:
    """Of so many values in ascending order the place of the least one that so many percent do not exceed."""
    return ceil(count * percent / 100) - 1


def _percentile(ascending: Numbers, percent: int) -> int | None:
    """The least value that so many percent of the values do not exceed (nearest rank)."""
    return int(ascending[rank_of(percent, len(ascending))]) if len(ascending) else None
