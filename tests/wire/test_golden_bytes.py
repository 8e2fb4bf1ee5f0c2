"""The golden bytes of the specification, which nobody's encoder made, are read and written."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from typing import Any

import pytest

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq import ha, streams

PACKAGE = "replispec.wire.rocketmq"
EXAMPLES: list[dict[str, Any]] = json.loads((files(PACKAGE) / "vectors.json").read_text("utf-8"))["messages"]
each = pytest.mark.parametrize("example", EXAMPLES, ids=[example["name"] for example in EXAMPLES])


def bytes_of(example: dict[str, Any]) -> bytes:
    return bytes.fromhex(example["hex"])


def shown(message: Any) -> Any:
    """A message as the examples have it."""
    if dataclasses.is_dataclass(message):
        return {field.name: shown(getattr(message, field.name)) for field in dataclasses.fields(message)}
    if isinstance(message, list):
        return [shown(item) for item in message]
    return message.hex() if isinstance(message, bytes) else message


@each
def test_golden_bytes_are_read_and_written(example: dict[str, Any]) -> None:
    data = bytes_of(example)
    message = getattr(ha, example["message"]).decode(data)
    assert shown(message) == example["fields"]
    assert message.encode() == data


@each
def test_golden_bytes_cut_anywhere_or_with_one_more_are_blamed_on_the_peer(example: dict[str, Any]) -> None:
    kind, data = getattr(ha, example["message"]), bytes_of(example)
    for cut in range(len(data)):
        with pytest.raises(RemoteProtocolError):
            kind.decode(data[:cut])
    with pytest.raises(RemoteProtocolError):
        kind.decode(data + b"\0")


def test_every_frame_of_replication_has_golden_bytes() -> None:
    frames = {
        form.message for stream in streams.STREAMS if stream.name.startswith("HA_") for form in stream.forms
    }
    assert {example["message"] for example in EXAMPLES} == frames
