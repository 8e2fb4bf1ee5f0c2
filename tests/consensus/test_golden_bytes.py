"""The golden bytes of what lies on a disk, which nobody's encoder made, are read and written."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from typing import Any

import pytest

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.raft import member

EXAMPLES: list[dict[str, Any]] = json.loads(
    (files("replispec.wire.raft") / "vectors.json").read_text("utf-8")
)["messages"]


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["name"] for example in EXAMPLES])
def test_golden_bytes_are_read_and_written_and_blamed_when_cut(example: dict[str, Any]) -> None:
    data, kind = bytes.fromhex(example["hex"]), getattr(member, example["message"])
    message = kind.decode(data)
    shown = {
        each.name: value.hex() if isinstance(value := getattr(message, each.name), bytes) else value
        for each in dataclasses.fields(message)
    }
    assert shown == example["fields"]
    assert message.encode() == data
    for bad in (*(data[:cut] for cut in range(len(data))), data + b"\0"):
        with pytest.raises(RemoteProtocolError):
            kind.decode(bad)
