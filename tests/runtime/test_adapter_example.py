"""The run that docs/adapter-protocol.md shows byte by byte is true for both runtimes."""

import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from replispec.adapter.v1 import adapter_pb2
from replispec.adapter.v1 import messages as adapter
from replispec.runtime.documents import betterproto_seam, official_seam
from replispec.runtime.documents.delimited import DocumentBuffer, delimited
from tests.runtime.own_messages import from_betterproto, from_official

PAGE = Path(__file__).parents[2] / "docs" / "adapter-protocol.md"
CLASSES: dict[str, tuple[Any, Any]] = {
    ">": (adapter.RunnerMessage, adapter_pb2.RunnerMessage),
    "<": (adapter.AdapterMessage, adapter_pb2.AdapterMessage),
}


def shown() -> list[tuple[str, str, bytes]]:
    """Writer, protobuf's text, and bytes of every message that the page shows."""
    blocks = "\n".join(re.findall(r"^```\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE))
    messages = re.findall(r"^([<>] .*\n(?:  .*\n)+)", blocks, re.MULTILINE)
    found = []
    for message in messages:
        lines = [line[2:] for line in message.splitlines()]
        is_bytes = [bool(re.fullmatch(r"[0-9a-f]{2}( [0-9a-f]{2})*", line)) for line in lines]
        text = " ".join(line for line, other in zip(lines, is_bytes, strict=True) if not other)
        data = " ".join(line for line, other in zip(lines, is_bytes, strict=True) if other)
        found.append((message[0], text, bytes.fromhex(data)))
    return found


def test_the_page_shows_a_run() -> None:
    assert [writer for writer, _, _ in shown()] == [">", "<", ">", "<", ">", "<", ">", "<", "<"]


@pytest.mark.parametrize(("writer", "text", "data"), shown())
def test_a_message_of_the_page_is_what_both_runtimes_write_and_read(
    writer: str, text: str, data: bytes
) -> None:
    dataclass, official = CLASSES[writer]
    message = text_format.Parse(text, official())
    assert delimited(official_seam.encode(message)) == data
    (document,) = DocumentBuffer().receive(data)
    read = betterproto_seam.decode(dataclass, document, unknown_allowed=False)
    assert from_betterproto(read) == from_official(message)
    assert delimited(betterproto_seam.encode(read)) == data
