"""What the frames of each kind of stream say: one reader a kind, on the generated decoders.

A reader takes one frame at a position of a sequence space and tells its size and its message. It
reads no more than the header (and a small JSON body), so a frame whose body has a hole is read too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from replispec.replay.frames.digests import digest
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import FrameForm, Stream
from replispec.wire.rocketmq import ha, remoting, streams
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from replispec.wire.rocketmq.commands import REQUEST_BODIES

REMOTING, HA_REPLICA, HA_MASTER = "remoting", "ha_replica", "ha_master"
HA_LEGACY_REPLICA, HA_LEGACY_MASTER, FOREIGN = "ha_legacy_replica", "ha_legacy_master", "foreign"

JSON_BODY_BYTES_MAXIMUM = 64 * 1024
# No commit log reaches 256 TiB: while looking for a place to start, a larger offset is noise.
PLAUSIBLE_OFFSET_MAXIMUM = 2**48
# Likewise, no header of a sound frame comes near this size in bytes.
PLAUSIBLE_HEADER_MAXIMUM = 64 * 1024
REMOTING_FIXED = len(remoting.RemotingFrame().encode())
# As plain numbers: members of an enum cost more to compare, and every frame is asked.
_JSON, _RESPONSE = int(SerializeType.JSON), int(RemotingFlag.RESPONSE)
_ENCODING_AT, _HEADER_AT = (
    remoting.RemotingFrameFixed.places()[name][0] for name in ("serialize_type", "header_length")
)

ReplicaMessage = ha.HaHandshakeId | ha.HaHandshakeAddress | ha.HaReport
AnswerMessage = ha.HaHandshakeAnswer | ha.HaHandshakeAnswerPadded
AnswerFixed = ha.HaHandshakeAnswerFixed | ha.HaHandshakeAnswerPaddedFixed
LegacyMessage = ha.HaLegacyReport | ha.HaLegacyTransferHeaderFixed
Message = (
    remoting.RemotingHeader
    | ReplicaMessage
    | AnswerMessage
    | AnswerFixed
    | ha.HaTransferHeaderFixed
    | LegacyMessage
)
# Size of the whole frame (or SHORT, BAD), message (None: its header has a hole), bytes of body, the
# body when it is small JSON, the raw body when asked for, the header's encoding (remoting) or the
# digest of the log bytes when all of them are there (master).
Outcome = tuple[int, Message | None, int, bytes | None, bytes | None, int | None]
SHORT, BAD = -1, -2
NOT_WHOLE: Outcome = (SHORT, None, 0, None, None, None)
NO_FRAME: Outcome = (BAD, None, 0, None, None, None)


class FrameReader(Protocol):
    """Reads the frames of one kind of stream.

    `evidence`: how many frames in a row prove that a place found by searching is a frame's start,
    when the bytes end after them.
    """

    kind: str
    stream: Stream
    evidence: int

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """The frame at `position`. SHORT: a hole or the end lies in its head; BAD: no frame."""

    def read_run(self, space: SequenceSpace, position: int) -> tuple[list[int], list[Outcome], int]:
        """Frames that lie whole in the window of `space` at `position`, as `read` reads them, one after the
        other: their positions, what they say, and where the next one begins. None is no fault."""

    def worth_reading(self, buffer: bytes, at: int) -> bool:
        """Whether a place that fits a form deserves a look at its header, while searching."""

    def plausible(self, message: Message) -> bool:
        """Whether the values make sense, stricter than the protocol: used while searching only."""

    def follows(self, previous: Message, message: Message) -> bool:
        """Whether one frame may come right after another: used while searching only."""


class RemotingReader:
    """Remoting commands; `keep_bodies`: outcomes carry the raw bodies."""

    kind = REMOTING
    stream = streams.REMOTING
    evidence = 1

    def __init__(self, *, keep_bodies: bool = False) -> None:
        self._keep_bodies = keep_bodies
        self._measure = quick_measure(self.stream)

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See Reader. A JSON body of at most 64 KiB is part of the outcome, unless users may have written it.

        Those are the bodies of requests that the specification has no type for: messages, above all.
        """
        at = space.window(position, REMOTING_FIXED)
        buffer = space.buffer
        try:
            size = self._measure(buffer, at, len(buffer))
            if size < 0:
                return NOT_WHOLE
            if len(buffer) - at < REMOTING_FIXED:
                return size, None, 0, None, None, None
            _, encoding, header_length = remoting.RemotingFrameFixed.decode(buffer, at)
            head = REMOTING_FIXED + header_length
            if head > size:
                return NO_FRAME
            if len(buffer) - at < head:
                at = space.window(position, head)
                buffer = space.buffer
                if len(buffer) - at < head:
                    return size, None, 0, None, None, None
            header = buffer[at + REMOTING_FIXED : at + head]
            if encoding == _JSON:
                message = remoting.RemotingHeader.decode_json(header)
            else:
                message = remoting.RemotingHeader.decode_binary(header)
        except RemoteProtocolError:
            return NO_FRAME
        length = size - head
        ours = length <= JSON_BODY_BYTES_MAXIMUM and (
            message.flag & _RESPONSE or message.code in REQUEST_BODIES
        )
        if not length or not (ours or self._keep_bodies):
            return size, message, length, None, None, encoding
        body = whole_bytes(space, position, head, size)
        as_json = ours and body is not None and body[:1] in (b"{", b"[")
        kept = body if self._keep_bodies else None
        return size, message, length, body if as_json else None, kept, encoding

    def read_run(self, space: SequenceSpace, position: int) -> tuple[list[int], list[Outcome], int]:
        """See Reader. Whatever is not plain is left to `read`: another encoding, a header that breaks."""
        at = space.window(position, REMOTING_FIXED)
        buffer, start, end = space.buffer, position - at, len(space.buffer)
        positions: list[int] = []
        outcomes: list[Outcome] = []
        decode, number, keep = remoting.RemotingHeader.decode_json, int.from_bytes, self._keep_bodies
        measure = self._measure
        while end - at >= REMOTING_FIXED:
            try:
                size = measure(buffer, at, end)
                head = REMOTING_FIXED + number(buffer[at + _HEADER_AT : at + REMOTING_FIXED], "big")
                if not head <= size <= end - at or buffer[at + _ENCODING_AT] != _JSON:
                    break
                message = decode(buffer[at + REMOTING_FIXED : at + head])
            except RemoteProtocolError:
                break
            length = size - head
            shown = kept = None
            if length and (keep or message.flag & _RESPONSE or message.code in REQUEST_BODIES):
                body = buffer[at + head : at + size]
                ours = message.flag & _RESPONSE or message.code in REQUEST_BODIES
                if ours and length <= JSON_BODY_BYTES_MAXIMUM and body[:1] in (b"{", b"["):
                    shown = body
                kept = body if keep else None
            positions.append(start + at)
            outcomes.append((size, message, length, shown, kept, _JSON))
            at += size
        return positions, outcomes, start + at

    def worth_reading(self, buffer: bytes, at: int) -> bool:
        """A header that fits in the frame, and starts as JSON if it says so."""
        if len(buffer) - at < REMOTING_FIXED:
            return True
        fixed = remoting.RemotingFrameFixed.decode(buffer, at)
        if fixed.header_length > min(fixed.total_length, PLAUSIBLE_HEADER_MAXIMUM):
            return False
        start = buffer[at + REMOTING_FIXED : at + REMOTING_FIXED + 1]
        return fixed.serialize_type != SerializeType.JSON or start in (b"{", b"")

    def plausible(self, message: Message) -> bool:
        """A header that decodes is proof enough."""
        return isinstance(message, remoting.RemotingHeader)

    def follows(self, previous: Message, message: Message) -> bool:  # noqa: ARG002 (nothing orders commands)
        """Any command may follow any other."""
        return True


class _OneByOne:
    """A reader without a quick way."""

    def read_run(self, space: SequenceSpace, position: int) -> tuple[list[int], list[Outcome], int]:  # noqa: ARG002
        """See Reader."""
        return [], [], position


class HaReplicaReader(_OneByOne):
    """What a replica sends: handshakes and reports."""

    kind = HA_REPLICA
    stream = streams.HA_REPLICA
    evidence = 2
    _messages: dict[str, type[ReplicaMessage]] = {  # noqa: RUF012 (never changed)
        item.__name__: item for item in (ha.HaHandshakeAddress, ha.HaHandshakeId, ha.HaReport)
    }

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See Reader."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = measured(self.stream, space.buffer, at)
            if form is None:
                return NOT_WHOLE
            at = space.window(position, size)
            if len(space.buffer) - at < size:
                return NOT_WHOLE if size == form.fixed else (size, None, 0, None, None, None)
            message = self._messages[form.message].decode(space.buffer, at, at + size)
        except RemoteProtocolError:
            return NO_FRAME
        return size, message, 0, None, None, None

    def worth_reading(self, buffer: bytes, at: int) -> bool:  # noqa: ARG002 (the forms say enough)
        """Every place that fits a form."""
        return True

    def plausible(self, message: Message) -> bool:
        """A report of an offset that a log can have; a handshake always."""
        return not isinstance(message, ha.HaReport) or 0 <= message.max_offset < PLAUSIBLE_OFFSET_MAXIMUM

    def follows(self, previous: Message, message: Message) -> bool:
        """A replica's log does not shrink while it is connected."""
        if isinstance(previous, ha.HaReport) and isinstance(message, ha.HaReport):
            return message.max_offset >= previous.max_offset
        return True


class HaMasterReader(_OneByOne):
    """What a master sends: handshake answers and runs of log bytes.

    `padded_answers`: the master is a 5.0.0, whose answers have 16 unused bytes that nothing in the
    bytes tells. `keep_bodies`: outcomes carry the log bytes.
    """

    kind = HA_MASTER
    evidence = 2
    _answers: dict[str, tuple[type[AnswerMessage], type[AnswerFixed]]] = {  # noqa: RUF012 (never changed)
        ha.HaHandshakeAnswer.__name__: (ha.HaHandshakeAnswer, ha.HaHandshakeAnswerFixed),
        ha.HaHandshakeAnswerPadded.__name__: (ha.HaHandshakeAnswerPadded, ha.HaHandshakeAnswerPaddedFixed),
    }

    def __init__(self, *, padded_answers: bool = False, keep_bodies: bool = False) -> None:
        self.stream = streams.HA_MASTER_5_0_0 if padded_answers else streams.HA_MASTER
        self._keep_bodies = keep_bodies

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See Reader. An answer with a hole in its body has no epochs: its fixed part is the message."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = measured(self.stream, space.buffer, at)
            if form is None:
                return NOT_WHOLE
            length = size - form.fixed
            answers = self._answers.get(form.message)
            at = space.window(position, size if answers else form.fixed)
            if len(space.buffer) - at < form.fixed:
                return size, None, 0, None, None, None
            if answers is None:
                header = ha.HaTransferHeaderFixed.decode(space.buffer, at)
                body = whole_bytes(space, position, form.fixed, size) if length else None
                kept = body if self._keep_bodies else None
                return size, header, length, None, kept, None if body is None else digest(body)
            if len(space.buffer) - at < size:
                return size, answers[1].decode(space.buffer, at), length, None, None, None
            return size, answers[0].decode(space.buffer, at, at + size), length, None, None, None
        except RemoteProtocolError:
            return NO_FRAME

    def worth_reading(self, buffer: bytes, at: int) -> bool:  # noqa: ARG002 (the forms say enough)
        """Every place that fits a form."""
        return True

    def plausible(self, message: Message) -> bool:
        """Offsets that a log can have, in an order that makes sense."""
        if isinstance(message, ha.HaTransferHeaderFixed):
            end = message.offset + message.body_size
            return (
                -1 <= message.offset < PLAUSIBLE_OFFSET_MAXIMUM
                and message.epoch >= 0
                and (message.offset < 0 or 0 <= message.epoch_start_offset <= end)
                and -1 <= message.confirm_offset < PLAUSIBLE_OFFSET_MAXIMUM
            )
        return (
            isinstance(message, AnswerMessage | AnswerFixed)
            and 0 <= message.max_offset < PLAUSIBLE_OFFSET_MAXIMUM
        )

    def follows(self, previous: Message, message: Message) -> bool:
        """Each run of log bytes starts where the one before it ended."""
        if isinstance(previous, ha.HaTransferHeaderFixed) and isinstance(message, ha.HaTransferHeaderFixed):
            return previous.offset < 0 or message.offset == previous.offset + previous.body_size
        return True


class LegacyReader(_OneByOne):
    """Replication outside controller mode: recognised, so that it is not taken for something else."""

    evidence = 1

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stream = streams.HA_LEGACY_REPLICA if kind == HA_LEGACY_REPLICA else streams.HA_LEGACY_MASTER

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See Reader."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = measured(self.stream, space.buffer, at)
            if form is None:
                return NOT_WHOLE
            message: LegacyMessage
            if self.kind == HA_LEGACY_REPLICA:
                message = ha.HaLegacyReport.decode(space.buffer, at, at + size)
            else:
                message = ha.HaLegacyTransferHeaderFixed.decode(space.buffer, at)
        except RemoteProtocolError:
            return NO_FRAME
        return size, message, size - form.fixed, None, None, None

    def worth_reading(self, buffer: bytes, at: int) -> bool:  # noqa: ARG002 (the forms say enough)
        """Every place that fits a form."""
        return True

    def plausible(self, message: Message) -> bool:
        """An offset that a log can have."""
        offset = message.max_offset if isinstance(message, ha.HaLegacyReport) else None
        if isinstance(message, ha.HaLegacyTransferHeaderFixed):
            offset = message.offset
        return offset is not None and 0 <= offset < PLAUSIBLE_OFFSET_MAXIMUM

    def follows(self, previous: Message, message: Message) -> bool:
        """Reports do not shrink, and each run of log bytes starts where the one before it ended."""
        if isinstance(previous, ha.HaLegacyReport) and isinstance(message, ha.HaLegacyReport):
            return message.max_offset >= previous.max_offset
        if isinstance(previous, ha.HaLegacyTransferHeaderFixed) and isinstance(
            message, ha.HaLegacyTransferHeaderFixed
        ):
            return message.offset == previous.offset + previous.body_size
        return False


def quick_measure(stream: Stream) -> Callable[[bytes, int, int], int]:
    """`stream.measure`, with a short way for sound frames where one form and one type byte tell all."""
    form = stream.forms[0]
    if len(stream.forms) > 1 or len(form.tests) != 1 or form.tests[0].size != 1 or not form.length_size:
        return stream.measure
    test, head, whole = form.tests[0], stream.head_size, stream.measure
    kind_at, lowest, highest = test.at, test.minimum, test.maximum
    length_at, length_end = form.length_at, form.length_end
    fixed, minimum, maximum = form.fixed, form.minimum, form.maximum
    number = int.from_bytes

    def measure(buffer: bytes, at: int, end: int) -> int:
        if end - at >= head and lowest <= buffer[at + kind_at] <= highest:
            length = number(buffer[at + length_at : at + length_end], "big", signed=True)
            if minimum <= length <= maximum:
                return fixed + length
        return whole(buffer, at, end)

    return measure


def measured(stream: Stream, buffer: bytes, at: int) -> tuple[FrameForm | None, int]:
    """The form and the whole size of the frame at `buffer[at]`; (None, 0) when the bytes end before.

    Raises RemoteProtocolError when no form fits or a length is out of bounds.
    """
    form = stream.form_at(buffer, at, len(buffer))
    if isinstance(form, int):
        return None, 0
    size = stream.measure(buffer, at, len(buffer))
    return (None, 0) if size < 0 else (form, size)


def whole_bytes(space: SequenceSpace, position: int, begin: int, end: int) -> bytes | None:
    """Bytes [begin, end) of the frame at `position`; None when a hole lies in them."""
    at = space.window(position, end)
    return space.buffer[at + begin : at + end] if len(space.buffer) - at >= end else None
