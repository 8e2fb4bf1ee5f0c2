"""The streams of brokers, as clients, other brokers and the controller speak to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from replispec.replay.frames.family import FramesFamily, MessageColumns
from replispec.replay.frames.kafka.readers import ANSWERS, REQUESTS, AnswerReader, RequestReader

FIELDS: Final = [
    pa.field("api_key", pa.int32()),
    pa.field("api_version", pa.int32()),
    pa.field("correlation_id", pa.int32()),
    pa.field("client_id", pa.string()),
    pa.field("kept_body", pa.binary()),
]


def _arrays(messages: Sequence[Any], encodings: Sequence[int | None]) -> list[pa.Array]:  # noqa: ARG001 (none has one)
    names = ("api_key", "api_version", "correlation_id", "client_id", "kept")
    return [
        pa.array([getattr(each, name, None) for each in messages], field.type)
        for name, field in zip(names, FIELDS, strict=True)
    ]


def _kinds(initiator: bool | None) -> tuple[str, ...]:
    return () if initiator is False else (REQUESTS,)


FAMILY = FramesFamily(
    readers=lambda _: {REQUESTS: RequestReader(), ANSWERS: AnswerReader()},
    kinds=_kinds,
    told=lambda *_: (),
    peers={REQUESTS: ANSWERS, ANSWERS: REQUESTS},
    columns=(MessageColumns(frozenset({REQUESTS, ANSWERS}), FIELDS, _arrays),),
)
