"""How long requests waited for their answers: percentiles by request code, of one capture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import ceil

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.report.model import Latency
from replispec.wire.rocketmq.codes import REQUEST_CODE_NAMES, RESPONSE_CODE_NAMES


def latencies(file: str, rows: Iterable[Observation]) -> list[Latency]:
    """The latency of every request code in one capture, by code."""
    waited: dict[int, list[int]] = defaultdict(list)
    unanswered: Counter[int] = Counter()
    for row in rows:
        if row.kind == ObservationKind.LATENCY and row.code is not None:
            waited[row.code] += row.durations_ns or ()
            unanswered[row.code] += row.unanswered or 0
    return [_latency(file, code, sorted(waited[code]), unanswered[code]) for code in sorted(waited)]


def request_name(code: int) -> str:
    """The name of a request code, all of them where releases differ; empty for a code without one."""
    return " or ".join(each.name for each in REQUEST_CODE_NAMES if each.number == code)


def response_name(code: int) -> str:
    """The same of a response code."""
    return " or ".join(each.name for each in RESPONSE_CODE_NAMES if each.number == code)


def _latency(file: str, code: int, waited: list[int], unanswered: int) -> Latency:
    named = request_name(code)
    p50, p95, p99, longest = (_percentile(waited, percent) for percent in (50, 95, 99, 100))
    return Latency(file, code, named, len(waited), unanswered, p50, p95, p99, longest)


def _percentile(ascending: list[int], percent: int) -> int | None:
    """The least value that so many percent of the values do not exceed (nearest rank)."""
    return ascending[ceil(len(ascending) * percent / 100) - 1] if ascending else None
