"""Byte streams that consist of self-delimiting frames: how a frame is recognised and measured.

A stream (one direction of a connection) is a list of forms, tried in order. A form is chosen by
tests on big-endian signed integers at fixed places and tells the size of the whole frame. The
forms are data made from the specification; this module only interprets them, so a reader of a
socket, a reader of a capture and the dissector measure frames by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from struct import Struct
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError

Buffer = bytes | bytearray | memoryview
Measure = Callable[[Buffer, int, int], int]
_CODES: Final = {1: "B", 2: "h", 4: "i", 8: "q"}
"""How an integer of so many bytes is unpacked."""
_NUMBER_AND_LENGTH: Final = Struct(">ii")


@dataclass(frozen=True, slots=True)
class FrameTest:
    """A big-endian integer of `size` bytes at byte `at` must lie in [minimum, maximum].

    One-byte integers are unsigned (they are type bytes); longer ones are signed.
    """

    at: int
    size: int
    minimum: int
    maximum: int

    @property
    def end(self) -> int:
        """The number of bytes of the frame that must be there before the test can be made."""
        return self.at + self.size


@dataclass(frozen=True, slots=True)
class FrameForm:
    """One kind of frame: `fixed` bytes, plus the value of a length field when `length_size` > 0.

    `minimum` and `maximum` bound the length field's value (bytes); a value outside is the peer's
    fault, so no reader ever waits for, or makes room for, more than `fixed + maximum` bytes.
    """

    message: str
    tests: tuple[FrameTest, ...]
    fixed: int
    length_at: int = 0
    length_size: int = 0
    minimum: int = 0
    maximum: int = 0

    @property
    def length_end(self) -> int:
        """The number of bytes of the frame that must be there before its length is known."""
        return self.length_at + self.length_size


@dataclass(frozen=True, slots=True)
class Stream:
    """One direction of a connection as an ordered choice of frame forms.

    The first frame of a connection has one of the forms `first`, where there are some, all others of `forms`.
    """

    name: str
    sender: str
    forms: tuple[FrameForm, ...]
    first: tuple[FrameForm, ...] = ()
    head_size: int = field(init=False)
    _by_number: dict[int, FrameForm] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ends = [test.end for form in self.forms for test in form.tests]
        ends += [form.length_end for form in self.forms]
        object.__setattr__(self, "head_size", max(ends, default=0))
        object.__setattr__(self, "_by_number", _by_number(self.forms))

    @property
    def opening(self) -> Stream:
        """The stream of which the first frame of a connection is one."""
        return Stream(self.name, self.sender, self.first) if self.first else self

    def measure(self, buffer: Buffer, at: int, end: int) -> int:
        """The size in bytes of the frame that starts at `buffer[at]`, of which `end` is the limit.

        Returns -n when at least n bytes counted from `at` are needed to know the size. Raises
        RemoteProtocolError when no form fits or a length lies outside its bounds.
        """
        return self.form_and_size(buffer, at, end)[1]

    def form_and_size(self, buffer: Buffer, at: int, end: int) -> tuple[FrameForm | None, int]:
        """Form and size of the frame that starts at `buffer[at]`; no form with a size of -n when n bytes
        are needed to tell both. Raises RemoteProtocolError like `measure`."""
        if self._by_number and end - at >= _NUMBER_AND_LENGTH.size:
            number, length = _NUMBER_AND_LENGTH.unpack_from(buffer, at)
            known = self._by_number.get(number)
            if known is not None and known.minimum <= length <= known.maximum:
                return known, known.fixed + length
        form = self.form_at(buffer, at, end)
        if isinstance(form, int):
            return None, form
        if form.length_size == 0:
            return form, form.fixed
        if end - at < form.length_end:
            return None, -form.length_end
        length = integer_at(buffer, at + form.length_at, form.length_size)
        if not form.minimum <= length <= form.maximum:
            raise RemoteProtocolError(
                f"{form.message}: length {length} is outside {form.minimum}..{form.maximum}", offset=at
            )
        return form, form.fixed + length

    def form_at(self, buffer: Buffer, at: int, end: int) -> FrameForm | int:
        """The form of the frame that starts at `buffer[at]`, or -n when n bytes are needed to tell.

        Raises RemoteProtocolError when no form fits.
        """
        there = end - at
        for form in self.forms:
            for test in form.tests:
                if there < test.end:
                    return -test.end
                first, size = at + test.at, test.size
                value = buffer[first] if size == 1 else integer_at(buffer, first, size)
                if not test.minimum <= value <= test.maximum:
                    break
            else:
                return form
        raise RemoteProtocolError(f"no frame of {self.name} starts like this", offset=at)

    def form(self, message: str) -> FrameForm:
        """The form of the message with this name. Raises KeyError when the stream has none."""
        for form in self.forms:
            if form.message == message:
                return form
        raise KeyError(message)


def _by_number(forms: tuple[FrameForm, ...]) -> dict[int, FrameForm]:
    """Forms that are told by one number in their first four bytes, with the length in the next four: they
    are found in a quarter of the time. Empty when one of them is told in another way."""
    found: dict[int, FrameForm] = {}
    for form in forms:
        test = form.tests[0] if len(form.tests) == 1 else None
        is_one = test is not None and (test.at, test.size) == (0, 4) and test.minimum == test.maximum
        if test is None or not is_one or (form.length_at, form.length_size) != (4, 4):
            return {}
        found.setdefault(test.minimum, form)
    return found


@cache
def measure_of(stream: Stream) -> Measure:
    """`stream.measure`, in a third of its time for frames of a first form that has one test and a length."""
    form = stream.forms[0]
    numbers = [(each.at, each.size, each.minimum, each.maximum) for each in form.tests]
    if len(numbers) != 1 or form.length_size == 0:
        return stream.measure
    numbers.append((form.length_at, form.length_size, form.minimum, form.maximum))
    (first, size, low, high), (second, other_size, other_low, other_high) = sorted(numbers)
    if first + size > second or size not in _CODES or other_size not in _CODES:
        return stream.measure
    pair = Struct(f">{first}x{_CODES[size]}{second - first - size}x{_CODES[other_size]}")
    unpack_from, there, fixed, is_first = pair.unpack_from, pair.size, form.fixed, first == form.length_at
    measure = stream.measure

    def measured(buffer: Buffer, at: int, end: int) -> int:
        if end - at >= there:
            number, other = unpack_from(buffer, at)
            if low <= number <= high and other_low <= other <= other_high:
                return fixed + int(number if is_first else other)
        return measure(buffer, at, end)

    return measured


def integer_at(buffer: Buffer, at: int, size: int) -> int:
    """The big-endian integer of `size` bytes at `buffer[at]`: unsigned for one byte, else signed."""
    return int.from_bytes(buffer[at : at + size], "big", signed=size > 1)
