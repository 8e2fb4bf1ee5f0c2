"""What a case says as bytes: commands, messages of streams, and raw bytes that need not be either."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from replispec.conformance.model import Raw, Sent
from replispec.conformance.values import Variables, filled, number
from replispec.conformance.vocabulary import Vocabulary
from replispec.runtime.primitives.errors import LocalProtocolError

LANDMARK = re.compile(r"([a-z_]+)(?:\s*([+-])\s*([0-9]{1,9}))?")

# So many milliseconds nobody waits for: half of them are longer than any wait of a case.
OUTLASTS_MS = 60_000


class Unsendable(Exception):
    """A case asks for something that has no bytes: a fault of the case."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request on the wire that may be answered. The version is 0 where there are none."""

    opaque: int
    code: int
    oneway: bool
    version: int = 0


NO_COMMAND = -1
"""The code of a question of which only the number is known."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of an action, the questions among them, and words for the trace."""

    data: bytes
    questions: tuple[Question, ...]
    says: str


class Encoder:
    """Encodes what one case sends. A family whose requests have answers adds `command`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def sent(self, sent: Sent, variables: Variables) -> Encoded:
        """One command or message. Raises Unsendable or UnknownVariable."""
        try:
            if sent.message is not None:
                return self._message(sent.message, sent, variables)
            return self.command(sent, variables)
        except LocalProtocolError as fault:
            raise Unsendable(str(fault)) from None

    def command(self, sent: Sent, _: Variables) -> Encoded:
        """One command. Raises Unsendable, UnknownVariable or LocalProtocolError."""
        raise Unsendable(f"{sent.command or sent.code}: this family has no commands: send a message")

    def _message(self, name: str, sent: Sent, variables: Variables) -> Encoded:
        kind: Any = self._vocabulary.messages[name]
        values: Any = filled(sent.fields, variables)
        says = f"{name} {values}"
        if sent.log is not None:
            first = number(filled(sent.log.first, variables))
            values["body"] = self.log_bytes(first, sent.log.records, sent.log.size)
        try:
            message = kind(**_numbers(kind, _nested(kind, values)))
            data: bytes = message.encode()
        except (TypeError, AttributeError) as fault:
            raise Unsendable(f"{name}: {fault}") from None
        return Encoded(data, (), says)

    def log_bytes(self, first: int, records: int, size: int) -> bytes:
        """So many records of a log, each of `size` bytes, from its byte `first` on. Raises Unsendable."""
        raise Unsendable(f"{records} records of {size} bytes at {first}: this family has no logs")

    def raw(self, raw: Raw, variables: Variables) -> Encoded:
        """Bytes that need not be whole frames. Raises Unsendable or UnknownVariable."""
        parts = [self.sent(each, variables) for each in raw.of]
        data = b"".join(part.data for part in parts) + bytes.fromhex(raw.hex)
        if raw.patch:
            data = self._patched(
                data, {name: number(filled(value, variables)) for name, value in raw.patch.items()}
            )
        for at, digits in raw.overwrite.items():
            piece = bytes.fromhex(digits)
            if at + len(piece) > len(data):
                raise Unsendable(f"of {len(data)} bytes none at {at} can be overwritten with {len(piece)}")
            data = data[:at] + piece + data[at + len(piece) :]
        if raw.keep is not None:
            kept = self.place(raw.keep, data)
            if not 0 <= kept <= len(data):
                raise Unsendable(f"keep {raw.keep}: there are {len(data)} bytes")
            data = data[:kept]
        says = " + ".join(part.says for part in parts) or f"{len(data)} bytes"
        return Encoded(data, tuple(each for part in parts for each in part.questions), f"bytes of {says}")

    def answer(
        self,
        code: str,
        asked: Question,  # noqa: ARG002
        header: Mapping[str, object],  # noqa: ARG002
        body: object,  # noqa: ARG002
    ) -> bytes:
        """The answer to a request of the subject. Raises Unsendable."""
        raise Unsendable(f"{code}: this family has no commands to answer")

    def landmarks(self, data: bytes) -> Mapping[str, int]:
        """Where what a case may name lies in the first frame of these bytes."""
        return {
            name: start for name, (start, size) in self._vocabulary.fixed.items() if len(data) >= start + size
        }

    def place(self, place: int | str, data: bytes) -> int:
        """A place in bytes, counted from their start. Raises Unsendable for a landmark that is not there."""
        if isinstance(place, int):
            return place if place >= 0 else len(data) + place
        landmark = LANDMARK.fullmatch(place)
        known = self.landmarks(data)
        if landmark is None or landmark[1] not in known:
            raise Unsendable(
                f"{place!r} is no place in these bytes: {', '.join(known) or 'no frame is there'}"
            )
        step = int(landmark[3] or 0)
        return known[landmark[1]] + (step if landmark[2] == "+" else -step)

    def pieces(self, raw: Raw, data: bytes) -> list[bytes]:
        """The bytes cut where the case says; a place below 0 counts from the end.

        Raises Unsendable for a place that cuts nothing.
        """
        if raw.each and len(data) > 1:
            return [data[at : at + 1] for at in range(len(data))]
        cuts = sorted({self.place(each, data) for each in raw.split})
        if raw.each or any(not 0 < at < len(data) for at in cuts):
            said = "each" if raw.each else list(raw.split)
            raise Unsendable(
                f"split {said} cuts nothing off {len(data)} bytes: a place is above 0 and below that"
            )
        return [data[start:end] for start, end in pairwise((0, *cuts, len(data)))]

    def _patched(self, data: bytes, changes: Mapping[str, int]) -> bytes:
        """The first frame with fixed fields overwritten, whatever they say."""
        patched = bytearray(data)
        for name, value in changes.items():
            start, size = self._vocabulary.fixed[name]
            if len(data) < start + size:
                raise Unsendable(f"no frame whose {name} could be patched")
            patched[start : start + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")
        return bytes(patched)


def patient(action: Sent | Raw, durations: frozenset[str], patience: float) -> Sent | Raw:
    """What is sent, with the times that it names multiplied like the waits of the case.

    A time that outlasts every wait is what a subject is given, not what a case waits for: it never shrinks.
    """
    if isinstance(action, Raw):
        return dataclasses.replace(action, of=tuple(_scaled(each, durations, patience) for each in action.of))
    return _scaled(action, durations, patience)


def _scaled(sent: Sent, durations: frozenset[str], patience: float) -> Sent:
    if not durations.intersection(sent.header):
        return sent
    header = {
        name: _stretched(value, patience) if name in durations and isinstance(value, int) else value
        for name, value in sent.header.items()
    }
    return dataclasses.replace(sent, header=header)


def _stretched(duration_ms: int, patience: float) -> int:
    return round(duration_ms * (patience if duration_ms < OUTLASTS_MS else max(patience, 1.0)))


def _nested(kind: type[Any], values: Mapping[str, object]) -> dict[str, object]:
    """The fields with messages where they are lists of such."""
    found = dict(values)
    hints = get_type_hints(kind)
    for name, value in values.items():
        held = next(iter(get_args(hints.get(name))), None)
        if isinstance(value, list) and dataclasses.is_dataclass(held):
            found[name] = [_made(held, each) for each in value]
    return found


def _made(kind: Any, values: Mapping[str, object]) -> object:
    return kind(**_numbers(kind, values))


def _numbers(kind: type[Any], values: Mapping[str, object]) -> dict[str, object]:
    """The fields with numbers where the message has them: what was saved from a header is text."""
    numeric = {each.name for each in dataclasses.fields(kind) if type(each.default) is int}
    return {
        name: number(value) if name in numeric and isinstance(value, str) else value
        for name, value in values.items()
    }
