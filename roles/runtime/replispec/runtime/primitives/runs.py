"""Runs of messages that end with a mark, for generated codecs."""

from __future__ import annotations

from collections.abc import Callable, Collection

from replispec.runtime.primitives.binary import Buffer, Value, Written
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError


def read_run(
    read: Callable[..., tuple[Value, int]],
    mark: bytes,
    buffer: Buffer,
    at: int,
    end: int,
    what: str,
    **given: int,
) -> tuple[list[Value], int]:
    """The elements before the next `mark`, and the position after it. Raises RemoteProtocolError."""
    elements, size = [], len(mark)
    while bytes(buffer[at : min(at + size, end)]) != mark:
        if at >= end:
            raise RemoteProtocolError(f"{what}: nothing ends it", offset=at)
        element, place = read(buffer, at, end, **given)
        if place == at:
            raise RemoteProtocolError(f"{what}: an element of no bytes", offset=at)
        elements.append(element)
        at = place
    return elements, at + size


def write_run(elements: Collection[Written], mark: bytes, what: str, **given: int) -> bytes:
    """The inverse of read_run. Raises LocalProtocolError when an element would be taken for the mark."""
    parts = [element.encode(**given) for element in elements]
    if any(part.startswith(mark) for part in parts):
        raise LocalProtocolError(f"{what}: an element looks like its end")
    return b"".join((*parts, mark))
