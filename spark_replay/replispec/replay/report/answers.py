"""What requests were answered: how often each request code got each response code, and with which remark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.report.latencies import request_name, response_name
from replispec.replay.report.model import Answers
from replispec.wire.rocketmq.codes import ResponseCode

# Pairs of codes in the report; a peer may answer each request with a number of its own.
ANSWERS_MAXIMUM = 500


def answers(file: str, rows: Iterable[Observation]) -> list[Answers]:
    """The answers of one capture by request code, those that are no success first."""
    counts: Counter[tuple[int, int]] = Counter()
    remarks: dict[tuple[int, int], str] = {}
    for row in rows:
        if row.kind != ObservationKind.LATENCY or row.code is None or not row.answer_codes:
            continue
        counts.update((row.code, code) for code in row.answer_codes)
        for code, remark in zip(sorted(set(row.answer_codes)), row.remarks or (), strict=False):
            if remark and not remarks.get((row.code, code)):
                remarks[row.code, code] = remark
    found = [
        Answers(
            file=file,
            code=code,
            name=request_name(code),
            answer_code=answer,
            answer_name=response_name(answer),
            count=count,
            remark=remarks.get((code, answer), ""),
            success=answer == ResponseCode.SUCCESS,
        )
        for (code, answer), count in sorted(counts.items())
    ]
    return sorted(found, key=lambda each: each.success)[:ANSWERS_MAXIMUM]
