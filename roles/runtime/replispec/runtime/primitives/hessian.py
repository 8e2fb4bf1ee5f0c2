"""Hessian 2 as Java's objects are written with it before version 1.0 of its specification: read, as plain
values; objects and maps are mappings by text, lists are lists.

Source: com.alipay.sofa hessian 3.3.6, Hessian2Output and Hessian2Constants; measured in snapshots of
controllers of Apache RocketMQ 5.4.0. Dates, binaries and fractions are in none, and are refused.
"""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError

Value = None | bool | int | str | list["Value"] | dict[str, "Value"]

NESTED_MAX: Final = 32
_END, _NULL, _TRUE, _FALSE = b"zNTF"
_INT, _LONG, _LONG_OF_INT, _STRING, _CHUNK = b"ILwSs"
_DEFINITION, _OBJECT, _MAP, _LIST, _FIXED_LIST = b"OoMVv"
_TYPE, _TYPE_REFERENCE, _LENGTH_BYTE, _LENGTH = b"tunl"
_REFERENCE, _REFERENCE_BYTE, _REFERENCE_SHORT = b"RJK"
_STRING_DIRECT_MAX: Final = 0x1F
# The first and the last tag, the tag of zero, and how many bytes follow, of numbers that their tag begins.
_INTS: Final = ((b"\x80\xbf\x90", 0), (b"\xc0\xcf\xc8", 1), (b"\xd0\xd7\xd4", 2))
_LONGS: Final = ((b"\xd8\xef\xe0", 0), (b"\xf0\xff\xf8", 1), (b"\x38\x3f\x3c", 2))


def read_hessian(data: bytes) -> Value:
    """The one value that all of `data` is. Raises RemoteProtocolError."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise RemoteProtocolError(f"{len(data) - reader.at} bytes after a value", offset=reader.at)
    return value


class _Reader:
    """Reads on from `at`; what was read is referred to by its number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._classes: list[list[str]] = []
        self._seen: list[Value] = []

    def value(self, depth: int) -> Value:
        """The next value."""
        if depth > NESTED_MAX:
            raise RemoteProtocolError(f"nested deeper than {NESTED_MAX}", offset=self.at)
        tag = self._take(1)[0]
        while tag == _DEFINITION:
            self._define(depth)
            tag = self._take(1)[0]
        if tag in (_NULL, _TRUE, _FALSE):
            return {_NULL: None, _TRUE: True, _FALSE: False}[tag]
        if tag == _OBJECT:
            return self._object(depth)
        if tag == _MAP:
            return self._map(depth)
        if tag in (_LIST, _FIXED_LIST):
            return self._list(depth, has_end=tag == _LIST)
        if tag in (_REFERENCE, _REFERENCE_BYTE, _REFERENCE_SHORT):
            return self._referred(tag)
        if tag <= _STRING_DIRECT_MAX or tag in (_STRING, _CHUNK):
            return self._text(tag)
        return self._number(tag)

    def _define(self, depth: int) -> None:
        name_length = self._whole(depth)
        self._characters(name_length)
        self._classes.append([self._name(depth) for _ in range(self._bounded(self._whole(depth)))])

    def _object(self, depth: int) -> Value:
        number = self._whole(depth)
        if not 0 <= number < len(self._classes):
            raise RemoteProtocolError(
                f"an object of the class {number}, which is not defined", offset=self.at
            )
        found: dict[str, Value] = {}
        self._seen.append(found)
        for name in self._classes[number]:
            found[name] = self.value(depth + 1)
        return found

    def _map(self, depth: int) -> Value:
        self._skip_type(depth)
        found: dict[str, Value] = {}
        self._seen.append(found)
        while not self._is_next(_END):
            key = self.value(depth + 1)
            if not isinstance(key, str | int):
                raise RemoteProtocolError("a key of a map is neither text nor number", offset=self.at)
            found[str(key)] = self.value(depth + 1)
        return found

    def _list(self, depth: int, *, has_end: bool) -> Value:
        found: list[Value] = []
        self._seen.append(found)
        if not has_end:
            self._whole(depth)
            found.extend(self.value(depth + 1) for _ in range(self._bounded(self._whole(depth))))
            return found
        self._skip_type(depth)
        if self._is_next(_LENGTH_BYTE):
            self._take(1)
        elif self._is_next(_LENGTH):
            self._take(4)
        while not self._is_next(_END):
            found.append(self.value(depth + 1))
        return found

    def _referred(self, tag: int) -> Value:
        number = self._unsigned({_REFERENCE: 4, _REFERENCE_BYTE: 1, _REFERENCE_SHORT: 2}[tag])
        if number >= len(self._seen):
            raise RemoteProtocolError(f"refers to value {number}, which is not there", offset=self.at)
        return self._seen[number]

    def _skip_type(self, depth: int) -> None:
        if self._is_next(_TYPE):
            self._characters(self._unsigned(2))
        elif self._is_next(_TYPE_REFERENCE):
            self._whole(depth)

    def _text(self, tag: int) -> str:
        parts = []
        while tag == _CHUNK:
            parts.append(self._characters(self._unsigned(2)))
            tag = self._take(1)[0]
        length = self._unsigned(2) if tag == _STRING else tag
        if tag != _STRING and tag > _STRING_DIRECT_MAX:
            raise RemoteProtocolError("a text goes on as something else", offset=self.at)
        return "".join([*parts, self._characters(length)])

    def _number(self, tag: int) -> int:
        for (first, last, zero), count in (*_INTS, *_LONGS):
            if first <= tag <= last:
                return ((tag - zero) << (8 * count)) + self._unsigned(count)
        if tag in (_INT, _LONG_OF_INT):
            return int.from_bytes(self._take(4), signed=True)
        if tag == _LONG:
            return int.from_bytes(self._take(8), signed=True)
        raise RemoteProtocolError(f"a value begins with 0x{tag:02x}", offset=self.at - 1)

    def _whole(self, depth: int) -> int:
        value = self.value(depth + 1)
        if not isinstance(value, int):
            raise RemoteProtocolError("a number is expected", offset=self.at)
        return value

    def _name(self, depth: int) -> str:
        value = self.value(depth + 1)
        if not isinstance(value, str):
            raise RemoteProtocolError("a name is expected", offset=self.at)
        return value

    def _bounded(self, count: int) -> int:
        """So many values, of which each takes a byte at least."""
        if not 0 <= count <= len(self._data) - self.at:
            raise RemoteProtocolError(f"{count} values are too many", offset=self.at)
        return count

    def _characters(self, count: int) -> str:
        """So many characters, each in UTF-8, and what is outside the basic plane as two."""
        if not 0 <= count <= len(self._data) - self.at:
            raise RemoteProtocolError(f"a text of {count} characters does not fit", offset=self.at)
        begin = self.at
        for _ in range(count):
            first = self._take(1)[0]
            self._take(0 if first < 0x80 else 1 if first < 0xE0 else 2)
        try:
            text = self._data[begin : self.at].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise RemoteProtocolError("a text is not UTF-8", offset=begin + error.start) from error
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _unsigned(self, count: int) -> int:
        return int.from_bytes(self._take(count))

    def _is_next(self, tag: int) -> bool:
        """Whether this tag comes next; then it is taken."""
        if self.at >= len(self._data):
            raise RemoteProtocolError("a value is cut off", offset=self.at)
        is_next = self._data[self.at] == tag
        self.at += is_next
        return is_next

    def _take(self, count: int) -> bytes:
        taken = self._data[self.at : self.at + count]
        if len(taken) != count:
            raise RemoteProtocolError("a value is cut off", offset=self.at)
        self.at += count
        return taken
