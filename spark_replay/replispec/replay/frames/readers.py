"""What reads the frames of one kind of stream, and what it says of each.

A family gives a reader for every kind of stream that it has. A reader takes one frame at a position of a
sequence space and tells its size and its message. It reads no more than the head, so that a frame whose body
has a hole is read too; bodies are taken by `framing`, which knows no family.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.streams import Stream

FOREIGN = "foreign"
# Sizes that are none: a hole or the end lies in the head of the frame, or there is no frame.
SHORT, BAD = -1, -2


class Outcome(NamedTuple):
    """What is read of one frame: bytes of the whole frame (or SHORT, BAD), its message (None: its head has a
    hole), bytes of body at its end, and the number of the header's encoding, where there are several."""

    size: int
    message: Any = None
    body_size: int = 0
    encoding: int | None = None


NOT_WHOLE, NO_FRAME = Outcome(SHORT), Outcome(BAD)


class Run(NamedTuple):
    """Frames that follow each other, by columns."""

    sizes: Sequence[int] = ()
    messages: Sequence[Any] = ()
    body_sizes: Sequence[int] = ()
    encoding: int | None = None


Record = tuple[int, int]
"""Where in its log a record starts that a body holds, and the CRC-32 of what the record carries."""
Entry = tuple[int, int, int]
"""An entry of an agreed log that a body holds: its place there, its term, and the digest of its bytes."""
Pulled = tuple[int, int, str, int, int]
"""A message that a body hands to a consumer: its queue and its offset there, the address of the broker that
stored it, where its record starts in the log of that, and the CRC-32 of what it carries."""


class FrameReader(Protocol):
    """Reads the frames of one kind of stream; it keeps nothing of what it reads.

    `evidence`: how many frames in a row prove that a place found by searching is a frame's start, when the
    bytes end after them. `decoded`: its frames are told one by one; else the stream is only recognised.
    `searched`: a frame can be told in the middle of a stream. `prefaced`: something else may come before the
    first frame. `begins_marked`: the first frame is told by its bytes, whatever the others are.
    `cut_head_opens`: a first head that was cut is taken on trust when what is seen of it fits.
    `has_records`: bodies may hold records of a log.
    """

    kind: str
    stream: Stream
    evidence: int
    decoded: bool
    searched: bool
    prefaced: bool
    begins_marked: bool
    cut_head_opens: bool
    has_records: bool

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """The frame at `position`."""

    def read_run(self, space: SequenceSpace, position: int) -> Run:
        """Frames that lie whole in the window of `space` at `position`, as `read` reads them; maybe none."""

    def wants(self, message: Any) -> bool:
        """Whether a small body in JSON that comes with a message is to be shown."""

    def records(self, message: Any, buffer: bytes, begin: int, end: int) -> list[Record] | None:
        """The whole records in the body `buffer[begin:end]` of a message; None where it can hold none."""

    def worth_reading(self, buffer: bytes, at: int) -> bool:
        """Whether a place that fits a form deserves a look at its header, while searching."""

    def plausible(self, message: Any) -> bool:
        """Whether the values make sense, stricter than the protocol: used while searching only."""

    def follows(self, previous: Any, message: Any) -> bool:
        """Whether one frame may come right after another: used while searching only."""


class OneByOne:
    """A reader without a quick way, of a stream whose frames have a mark; its class says what is special."""

    evidence = 1
    decoded = True
    searched = True
    prefaced = False
    begins_marked = False
    cut_head_opens = False
    has_records = False

    def read_run(self, space: SequenceSpace, position: int) -> Run:  # noqa: ARG002 (see FrameReader)
        """See FrameReader."""
        return Run()

    def wants(self, message: Any) -> bool:  # noqa: ARG002 (see FrameReader)
        """See FrameReader."""
        return False

    def records(self, message: Any, buffer: bytes, begin: int, end: int) -> list[Record] | None:  # noqa: ARG002 (see FrameReader)
        """See FrameReader."""
        return None

    def worth_reading(self, buffer: bytes, at: int) -> bool:  # noqa: ARG002 (the forms say enough)
        """Every place that fits a form."""
        return True
