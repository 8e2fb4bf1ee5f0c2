"""What requests were answered: how often each request code got each response code, and with which remark."""

from __future__ import annotations

import numpy as np

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.observation import ObservationKind
from replispec.replay.report.model import Answers
from replispec.replay.report.rocketmq.latencies import elements, request_name, response_name
from replispec.wire.rocketmq.codes import ResponseCode

# Pairs of codes in the report; a peer may answer each request with a number of its own.
ANSWERS_MAXIMUM = 500


def answers(file: str, events: CaptureEvents) -> list[Answers]:
    """The answers of one capture by request code, those that are no success first."""
    rows = events.columns(ObservationKind.LATENCY)
    asked = rows.numbers("code")
    owners, codes = elements(rows.table.column("answer_codes"))
    pairs = np.stack([asked.numbers[owners], codes], axis=1)[asked.absent[owners] == 0]
    each, numbers = np.unique(pairs, axis=0, return_counts=True)
    counts = dict(zip(map(tuple, each.tolist()), numbers.tolist(), strict=True))
    remarks: dict[tuple[int, int], str] = {}
    answered, said = rows.table.column("answer_codes"), rows.table.column("remarks").to_pylist()
    for row, texts in enumerate(said):
        # Of each code of its answers a row has one remark, and as a rule nothing is remarked.
        known = sorted(set(answered[row].as_py())) if any(texts or ()) else ()
        code = int(asked.numbers[row])
        for answer, remark in zip(known, texts or (), strict=False):
            if remark:
                remarks.setdefault((code, answer), remark)
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
