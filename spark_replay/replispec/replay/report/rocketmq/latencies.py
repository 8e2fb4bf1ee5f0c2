"""How long requests waited for their answers: percentiles by request code, of one capture."""

from __future__ import annotations

from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.event_tables import Numbers, Rows, split
from replispec.replay.events.observation import ObservationKind
from replispec.replay.report.model import Latency
from replispec.wire.rocketmq.codes import REQUEST_CODE_NAMES, RESPONSE_CODE_NAMES


def latencies(file: str, events: CaptureEvents) -> list[Latency]:
    """The latency of every request code in one capture, by code."""
    rows = events.columns(ObservationKind.LATENCY)
    codes = rows.coded("code")
    owners, waited = elements(rows.table.column("durations_ns"))
    found = []
    for code, own in split(codes.codes):
        if codes.values[code] is not None:
            unanswered = int(rows.numbers("unanswered").numbers[own].sum())
            ascending = np.sort(waited[codes.codes[owners] == code])
            found.append(_latency(file, codes.values[code], ascending, unanswered))
    return sorted(found, key=lambda each: each.code)


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


def _latency(file: str, code: int, waited: Numbers, unanswered: int) -> Latency:
    named = request_name(code)
    p50, p95, p99, longest = (_percentile(waited, percent) for percent in (50, 95, 99, 100))
    return Latency(file, code, named, len(waited), unanswered, p50, p95, p99, longest)


def _percentile(ascending: Numbers, percent: int) -> int | None:
    """The least value that so many percent of the values do not exceed (nearest rank)."""
    return int(ascending[ceil(len(ascending) * percent / 100) - 1]) if len(ascending) else None
