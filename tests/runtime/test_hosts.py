"""What may stand for HOST:PORT."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.hosts import is_place


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "store.example:0", "[::1]:65535"])
def test_a_host_and_a_port_are_a_place(text: str) -> None:
    assert is_place(text)


@pytest.mark.parametrize(
    "text", ["", ":9092", "h", "h:", "h:x", "h:65536", "h:-1", f"h:{'9' * 5_000}", "h:1/folder", "a:1,b:2"]
)
def test_anything_else_is_none(text: str) -> None:
    assert not is_place(text)
