"""Python named tuples of the parts of BINARY messages that stand before a variable one."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.binary_fields import constant_name
from replispec.compiler.emit.python.tree import PRIMITIVES, TYPING, Class, Constant, FunctionDef, Names
from replispec.compiler.model.layout import FixedRun, end_in_fixed, steps, summed_after
from replispec.compiler.model.message import Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_CHECKSUMS = Names(f"{PRIMITIVES}.checksums")


def fixed_class(message: Message) -> Class:
    """A named tuple of the part before the variable one, for readers that leave the rest where it is."""
    run = steps(message)[0]
    assert isinstance(run, FixedRun)
    attributes = [
        Constant(field.name, annotation={"bool": "bool", "bytes": "bytes"}.get(field.type, "int"))
        for field in run.fields
    ]
    return Class(
        f"{message.name}Fixed",
        f"The first {run.size} bytes of {message.name}, field by field: {message.head}.",
        [str(TYPING.NamedTuple)],
        body=[*attributes, *_methods(message, run)],
    )


def _methods(message: Message, run: FixedRun) -> Iterator[FunctionDef]:
    yield FunctionDef(
        "decode",
        f"cls, buffer: {_BINARY.Buffer}, at: int = 0",
        str(TYPING.Self),
        list(_decode(message, run)),
        "The fields at `buffer[at]`, unchecked. Raises RemoteProtocolError when cut.",
        ["classmethod"],
    )
    yield FunctionDef(
        "encode",
        "self",
        "bytes",
        [f'return {_BINARY.pack}({constant_name(message, 0)}, "{message.name}", {", ".join(_values(run))})'],
        "These bytes; the rest goes after them. Raises LocalProtocolError when a value does not fit.",
    )
    yield from _checksum(message)
    if not message.places:
        return
    yield FunctionDef(
        "places",
        "cls",
        "dict[str, tuple[int, int]]",
        ["return {", *_places(run), "}"],
        "Where each field lies: its first byte in the message, and its size in bytes.",
        ["classmethod"],
    )


def _checksum(message: Message) -> Iterator[FunctionDef]:
    """The method that checks a whole message where it lies."""
    field = summed_after(message)
    if field is None:
        return
    assert field.checksum is not None
    function = _CHECKSUMS.crc32c if field.checksum.kind == "CRC_32C" else _BINARY.crc32
    place = end_in_fixed(message, field)
    written = f'int.from_bytes(buffer[at + {place - field.size} : at + {place}], "big")'
    yield FunctionDef(
        f"{field.name}_holds",
        f"cls, buffer: {_BINARY.Buffer}, at: int, end: int",
        "bool",
        [f"return {function}(memoryview(buffer)[at + {place} : end], {field.checksum.mask}) == {written}"],
        f"True when {field.name} of the message at `buffer[at:end]` is the checksum of what follows it.",
        ["classmethod"],
    )


def _decode(message: Message, run: FixedRun) -> Iterator[str]:
    yield f"if len(buffer) - at < {run.size}:"
    yield f'    raise {_BINARY.cut}(at, {run.size}, len(buffer), "{message.name}")'
    if _is_as_read(run):
        yield f"return cls._make({constant_name(message, 0)}.unpack_from(buffer, at))"
        return
    names = ", ".join(field.name for field in run.fields) + ("," if len(run.fields) == 1 else "")
    yield f"{names} = {constant_name(message, 0)}.unpack_from(buffer, at)"
    values = []
    for field in run.fields:
        if field.size == 3:
            values.append(f'int.from_bytes({field.name}, "big")')
        else:
            values.append(f"{field.name} == 1" if field.type == "bool" else field.name)
    yield f"return cls({', '.join(values)})"


def _is_as_read(run: FixedRun) -> bool:
    """True when the struct's values are those of the fields."""
    return all(field.size != 3 and field.type != "bool" for field in run.fields)


def _values(run: FixedRun) -> Iterator[str]:
    if _is_as_read(run):
        yield "*self"
        return
    for field in run.fields:
        if field.size == 3:
            yield f'self.{field.name}.to_bytes(3, "big")'
        else:
            yield f"int(self.{field.name})" if field.type == "bool" else f"self.{field.name}"


def _places(run: FixedRun) -> Iterator[str]:
    at = 0
    for field in run.fields:
        yield f'"{field.name}": ({at}, {field.size}),'
        at += field.size
