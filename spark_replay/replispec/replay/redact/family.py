"""What redaction is told of a family, and which families there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from replispec.replay.frames.framing import Decoded
from replispec.replay.redact.images import Image
from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.runtime import families

ROOM = "replay.redact"


class FrameWriter(Protocol):
    """Writes the frames of one family's connections into their images."""

    def connection(self, pair: Sequence[tuple[Decoded, Image]]) -> None:
        """The frames of both directions of a connection; what is written by nobody stays zero."""


@dataclass(frozen=True, slots=True, eq=False)
class RedactedFamily:
    """How the frames of one family are redacted; see `replispec.replay.redact.<family>.family`: `FAMILY`.

    `kinds`: of streams that its writer knows; `writer`: makes one for the names of a capture.
    """

    kinds: frozenset[str]
    writer: Callable[[Pseudonyms], FrameWriter]


@cache
def redacted_families() -> tuple[RedactedFamily, ...]:
    """Every family whose frames can be redacted."""
    return tuple(families.part(ROOM, name).FAMILY for name in families.with_part(ROOM))


class Writers:
    """The writers of all families; a connection is written by the family that reads it."""

    def __init__(self, names: Pseudonyms) -> None:
        self._writers = {
            kind: writer
            for family, writer in ((each, each.writer(names)) for each in redacted_families())
            for kind in family.kinds
        }

    def connection(self, pair: Sequence[tuple[Decoded, Image]]) -> None:
        """See FrameWriter. Connections that no family reads stay zero."""
        writer = next((self._writers[each.kind] for each, _ in pair if each.kind in self._writers), None)
        if writer is not None:
            writer.connection(pair)
