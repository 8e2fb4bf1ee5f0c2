"""What requests were answered: how often each request code got each response code, and with which remark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.capture_order import capture_place
from replispec.replay.events.observation import ObservationKind
from replispec.replay.report.model import Answers
from replispec.replay.report.rocketmq.latencies import elements, request_name, response_name
from replispec.wire.rocketmq.codes import ResponseCode

# Pairs of codes in the report; a peer may answer each request with a number of its own.
ANSWERS_MAXIMUM = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """How often a request code got a response code, and the first remark that is not empty with its place."""

    count: int
    place: tuple[Any, ...]
    remark: str

    def __add__(self, other: Answered) -> Answered:
        first = min((each for each in (self, other) if each.remark), key=_place, default=self)
        return Answered(self.count + other.count, first.place, first.remark)


def _place(each: Answered) -> tuple[Any, ...]:
    return each.place


Counts = dict[tuple[int, int], Answered]
"""By request code and response code."""


def answers(file: str, events: CaptureEvents) -> list[Answers]:
    """The answers of one capture by request code, those that are no success first."""
    return answers_of(file, [counted_answers(events)])


def answers_of(file: str, parts: Iterable[Counts]) -> list[Answers]:
    """The same of what parts of a capture count."""
    counts: Counts = {}
    for part in parts:
        for codes, found in part.items():
            counts[codes] = counts[codes] + found if codes in counts else found
    told = [
        Answers(
            file=file,
            code=code,
            name=request_name(code),
            answer_code=answer,
            answer_name=response_name(answer),
            count=each.count,
            remark=each.remark,
            success=answer == ResponseCode.SUCCESS,
        )
        for (code, answer), each in sorted(counts.items())
    ]
    return sorted(told, key=lambda each: each.success)[:ANSWERS_MAXIMUM]


def counted_answers(events: CaptureEvents) -> Counts:
    """What any whole connections count."""
    rows = events.columns(ObservationKind.LATENCY)
    asked = rows.numbers("code")
    owners, codes = elements(rows.table.column("answer_codes"))
    pairs = np.stack([asked.numbers[owners], codes], axis=1)[asked.absent[owners] == 0]
    each, numbers = np.unique(pairs, axis=0, return_counts=True)
    remarks: dict[tuple[int, int], tuple[tuple[Any, ...], str]] = {}
    answered, said = rows.table.column("answer_codes"), rows.table.column("remarks").to_pylist()
    for row, texts in enumerate(said):
        # Of each code of its answers a row has one remark, and as a rule nothing is remarked.
        known = sorted(set(answered[row].as_py())) if any(texts or ()) else ()
        code = int(asked.numbers[row])
        for answer, remark in zip(known, texts or (), strict=False):
            if remark and (code, answer) not in remarks:
                remarks[code, answer] = capture_place(rows.row(row)), remark
    return {
        codes: Answered(count, *remarks.get(codes, ((), "")))
        for codes, count in zip(map(tuple, each.tolist()), numbers.tolist(), strict=True)
    }
