"""What the frames of each kind of stream say: one reader a kind, on the generated decoders."""

from __future__ import annotations

from typing import Any

from replispec.replay.frames.readers import NO_FRAME, NOT_WHOLE, OneByOne, Outcome, Record, Run
from replispec.replay.frames.rocketmq.log_records import records_in
from replispec.replay.tcp.space import SequenceSpace
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.streams import FrameForm
from replispec.wire.rocketmq import ha, remoting, streams
from replispec.wire.rocketmq.codes import RemotingFlag, SerializeType
from replispec.wire.rocketmq.commands import REQUEST_BODIES

REMOTING, HA_REPLICA, HA_MASTER = "remoting", "ha_replica", "ha_master"
HA_LEGACY_REPLICA, HA_LEGACY_MASTER = "ha_legacy_replica", "ha_legacy_master"

# No commit log reaches 256 TiB: while looking for a place to start, a larger offset is noise.
PLAUSIBLE_OFFSET_MAXIMUM = 2**48
# Likewise, no header of a sound frame comes near this size in bytes.
PLAUSIBLE_HEADER_MAXIMUM = 64 * 1024
# So many frames are read together: where one of them breaks, those behind it were looked at for nothing.
RUN_FRAMES_MAXIMUM = 128
REMOTING_FIXED = len(remoting.RemotingFrame().encode())
# As plain numbers: members of an enum cost more to compare, and every frame is asked.
_JSON, _RESPONSE = int(SerializeType.JSON), int(RemotingFlag.RESPONSE)

ReplicaMessage = ha.HaHandshakeId | ha.HaHandshakeAddress | ha.HaReport
AnswerMessage = ha.HaHandshakeAnswer | ha.HaHandshakeAnswerPadded
AnswerFixed = ha.HaHandshakeAnswerFixed | ha.HaHandshakeAnswerPaddedFixed


def _cut_of_head(name: str) -> tuple[int, int]:
    """How far a field of the fixed head, read as one integer, lies from its end in bits, and its mask."""
    at, size = remoting.RemotingFrameFixed.places()[name]
    return 8 * (REMOTING_FIXED - at - size), (1 << 8 * size) - 1


class RemotingReader(OneByOne):
    """Remoting commands."""

    kind = REMOTING
    stream = streams.REMOTING
    prefaced = True
    cut_head_opens = True

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        at = space.window(position, REMOTING_FIXED)
        buffer = space.buffer
        try:
            size = self.stream.measure(buffer, at, len(buffer))
            if size < 0:
                return NOT_WHOLE
            if len(buffer) - at < REMOTING_FIXED:
                return Outcome(size)
            _, encoding, header_length = remoting.RemotingFrameFixed.decode(buffer, at)
            head = REMOTING_FIXED + header_length
            if head > size:
                return NO_FRAME
            if len(buffer) - at < head:
                at = space.window(position, head)
                buffer = space.buffer
                if len(buffer) - at < head:
                    return Outcome(size)
            header = buffer[at + REMOTING_FIXED : at + head]
            if encoding == _JSON:
                message = remoting.RemotingHeader.decode_json(header)
            else:
                message = remoting.RemotingHeader.decode_binary(header)
        except RemoteProtocolError:
            return NO_FRAME
        return Outcome(size, message, size - head, encoding)

    def read_run(self, space: SequenceSpace, position: int) -> Run:
        """See FrameReader. What is not plain is left to `read`: another encoding, a header that breaks."""
        at = space.window(position, REMOTING_FIXED)
        headers, sizes, body_sizes = _run_of_headers(space.buffer, at)
        messages = remoting.RemotingHeader.plain_json(headers)
        if messages is None:
            messages = _until_one_breaks(headers)
            del sizes[len(messages) :], body_sizes[len(messages) :]
        return Run(sizes, messages, body_sizes, _JSON)

    def wants(self, message: Any) -> bool:
        """Unless users may have written it: those are the bodies of requests that the specification has no
        type for, messages above all."""
        return bool(message.flag & _RESPONSE) or message.code in REQUEST_BODIES

    def worth_reading(self, buffer: bytes, at: int) -> bool:
        """A header that fits in the frame, and starts as JSON if it says so."""
        if len(buffer) - at < REMOTING_FIXED:
            return True
        fixed = remoting.RemotingFrameFixed.decode(buffer, at)
        if fixed.header_length > min(fixed.total_length, PLAUSIBLE_HEADER_MAXIMUM):
            return False
        start = buffer[at + REMOTING_FIXED : at + REMOTING_FIXED + 1]
        return fixed.serialize_type != SerializeType.JSON or start in (b"{", b"")

    def plausible(self, message: Any) -> bool:
        """A header that decodes is proof enough."""
        return isinstance(message, remoting.RemotingHeader)

    def follows(self, previous: Any, message: Any) -> bool:  # noqa: ARG002 (nothing orders commands)
        """Any command may follow any other."""
        return True


def _run_of_headers(buffer: bytes, at: int) -> tuple[list[bytes], list[int], list[int]]:
    """The JSON headers of whole frames from `buffer[at]` on, the sizes of the frames, and of their bodies."""
    form = streams.REMOTING.forms[0]
    (length_bits, length_mask), (encoding_bits, encoding_mask), (header_bits, header_mask) = _CUTS
    fixed, number, end = form.fixed, int.from_bytes, len(buffer)
    least, most = fixed + form.minimum, fixed + form.maximum
    headers: list[bytes] = []
    sizes: list[int] = []
    body_sizes: list[int] = []
    for _ in range(RUN_FRAMES_MAXIMUM):
        # At the end of the buffer this is a smaller number, and the frame too long for what is left.
        start = at + REMOTING_FIXED
        fixed_head = number(buffer[at:start], "big")
        size = fixed + (fixed_head >> length_bits & length_mask)
        body = start + (fixed_head >> header_bits & header_mask)
        stop = at + size
        if start > end or not least <= size <= most or stop > end or body > stop:
            break
        if fixed_head >> encoding_bits & encoding_mask != _JSON:
            break
        headers.append(buffer[start:body])
        sizes.append(size)
        body_sizes.append(stop - body)
        at = stop
    return headers, sizes, body_sizes


_CUTS = tuple(map(_cut_of_head, ("total_length", "serialize_type", "header_length")))


def _until_one_breaks(headers: list[bytes]) -> list[Any]:
    found: list[Any] = []
    try:
        found.extend(map(remoting.RemotingHeader.decode_json, headers))
    except RemoteProtocolError:
        return found
    return found


class HaReplicaReader(OneByOne):
    """What a replica sends: handshakes and reports."""

    kind = HA_REPLICA
    stream = streams.HA_REPLICA
    evidence = 2
    _messages: dict[str, type[ReplicaMessage]] = {  # noqa: RUF012 (never changed)
        item.__name__: item for item in (ha.HaHandshakeAddress, ha.HaHandshakeId, ha.HaReport)
    }

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = self.stream.form_and_size(space.buffer, at, len(space.buffer))
            if form is None:
                return NOT_WHOLE
            at = space.window(position, size)
            if len(space.buffer) - at < size:
                return NOT_WHOLE if size == form.fixed else Outcome(size)
            message = self._messages[form.message].decode(space.buffer, at, at + size)
        except RemoteProtocolError:
            return NO_FRAME
        return Outcome(size, message)

    def plausible(self, message: Any) -> bool:
        """A report of an offset that a log can have; a handshake always."""
        return not isinstance(message, ha.HaReport) or 0 <= message.max_offset < PLAUSIBLE_OFFSET_MAXIMUM

    def follows(self, previous: Any, message: Any) -> bool:
        """A replica's log does not shrink while it is connected."""
        if isinstance(previous, ha.HaReport) and isinstance(message, ha.HaReport):
            return message.max_offset >= previous.max_offset
        return True


class HaMasterReader(OneByOne):
    """What a master sends: handshake answers and runs of log bytes.

    A master of 5.0.0 is known by the unused bytes in its answers, where they were seen. `padded_answers`: it
    is one even so.
    """

    kind = HA_MASTER
    evidence = 2
    has_records = True
    _answers: dict[str, tuple[type[AnswerMessage], type[AnswerFixed]]] = {  # noqa: RUF012 (never changed)
        ha.HaHandshakeAnswer.__name__: (ha.HaHandshakeAnswer, ha.HaHandshakeAnswerFixed),
        ha.HaHandshakeAnswerPadded.__name__: (ha.HaHandshakeAnswerPadded, ha.HaHandshakeAnswerPaddedFixed),
    }

    def __init__(self, *, padded_answers: bool = False) -> None:
        self.stream = streams.HA_MASTER_5_0_0 if padded_answers else streams.HA_MASTER

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader. An answer with a hole in its body has no epochs: its fixed part is the message."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = self.stream.form_and_size(space.buffer, at, len(space.buffer))
            if form is None:
                return NOT_WHOLE
            length = size - form.fixed
            answers = self._answers.get(form.message)
            if answers and (padded := _padded_answer(space, position)):
                form, size, answers = *padded, self._answers[padded[0].message]
            at = space.window(position, size if answers else form.fixed)
            if len(space.buffer) - at < form.fixed:
                return Outcome(size)
            if answers is None:
                return Outcome(size, ha.HaTransferHeaderFixed.decode(space.buffer, at), length)
            if len(space.buffer) - at < size:
                return Outcome(size, answers[1].decode(space.buffer, at), length)
            return Outcome(size, answers[0].decode(space.buffer, at, at + size), length)
        except RemoteProtocolError:
            return NO_FRAME

    def records(self, message: Any, buffer: bytes, begin: int, end: int) -> list[Record] | None:
        """See FrameReader."""
        is_transfer = isinstance(message, ha.HaTransferHeaderFixed)
        return records_in(buffer, begin, end, message.offset) if is_transfer else None

    def plausible(self, message: Any) -> bool:
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

    def follows(self, previous: Any, message: Any) -> bool:
        """Each run of log bytes starts where the one before it ended."""
        if isinstance(previous, ha.HaTransferHeaderFixed) and isinstance(message, ha.HaTransferHeaderFixed):
            return previous.offset < 0 or message.offset == previous.offset + previous.body_size
        return True


def _padded_answer(space: SequenceSpace, position: int) -> tuple[FrameForm, int] | None:
    """Form and size of the answer at `position` when its bytes show that it is one of 5.0.0."""
    stream = streams.HA_MASTER_5_0_0
    at = space.window(position, stream.head_size)
    try:
        form, size = stream.form_and_size(space.buffer, at, len(space.buffer))
    except RemoteProtocolError:
        return None
    return (form, size) if form is not None else None


class LegacyReader(OneByOne):
    """Replication outside controller mode: recognised, so that it is not taken for something else.

    Its frames have no mark at all: they are told from a known start only.
    """

    decoded = False
    searched = False

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.stream = streams.HA_LEGACY_REPLICA if kind == HA_LEGACY_REPLICA else streams.HA_LEGACY_MASTER

    def read(self, space: SequenceSpace, position: int) -> Outcome:
        """See FrameReader."""
        at = space.window(position, self.stream.head_size)
        try:
            form, size = self.stream.form_and_size(space.buffer, at, len(space.buffer))
            if form is None:
                return NOT_WHOLE
            message: Any
            if self.kind == HA_LEGACY_REPLICA:
                message = ha.HaLegacyReport.decode(space.buffer, at, at + size)
            else:
                message = ha.HaLegacyTransferHeaderFixed.decode(space.buffer, at)
        except RemoteProtocolError:
            return NO_FRAME
        return Outcome(size, message, size - form.fixed)

    def plausible(self, message: Any) -> bool:
        """An offset that a log can have."""
        offset = message.max_offset if isinstance(message, ha.HaLegacyReport) else None
        if isinstance(message, ha.HaLegacyTransferHeaderFixed):
            offset = message.offset
        return offset is not None and 0 <= offset < PLAUSIBLE_OFFSET_MAXIMUM

    def follows(self, previous: Any, message: Any) -> bool:
        """Reports do not shrink, and each run of log bytes starts where the one before it ended."""
        if isinstance(previous, ha.HaLegacyReport) and isinstance(message, ha.HaLegacyReport):
            return message.max_offset >= previous.max_offset
        if isinstance(previous, ha.HaLegacyTransferHeaderFixed) and isinstance(
            message, ha.HaLegacyTransferHeaderFixed
        ):
            return message.offset == previous.offset + previous.body_size
        return False
