"""Python codecs of TEXT messages: fields between separators, or one field a line."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.model.layout import derived_fields
from replispec.compiler.model.message import Field, Message

_BOUNDS = {"int32": "INT32", "int64": "INT64", "uint32": "UINT32"}


def text_attributes(message: Message) -> list[Field]:
    """The fields that become attributes: all but derived counts."""
    derived = derived_fields(message)
    return [field for field in message.fields if field.name not in derived]


def text_attribute(field: Field) -> tuple[str, str]:
    """Type and default of the attribute of a text field."""
    if field.repeated:
        return f"list[{field.type}]", "field(default_factory=list)"
    if field.type == "string":
        return ("str | None", "None") if field.optional else ("str", '""')
    return ("int | None", "None") if field.checksum else ("int", "0")


def text_members(message: Message) -> Iterator[str]:
    """Lines of the class body that read and write the text form."""
    yield from _line_members(message) if message.separator else _file_members(message)


def _line_members(message: Message) -> Iterator[str]:
    what = message.name
    required = sum(not field.optional for field in message.fields)
    yield "@classmethod"
    yield "def from_text(cls, text: str) -> Self:"
    yield f'    """The {what} that one line (without its end) is. Raises RemoteProtocolError."""'
    numbers = f"{required}, {len(message.fields)}"
    yield f'    parts = split_fields(text, "{message.separator}", {numbers}, "{what}")'
    values = []
    for number, field in enumerate(message.fields):
        part = f"parts[{number}]"
        if field.type in _BOUNDS:
            part = f'parse_integer({part}, {_BOUNDS[field.type]}, "{what}.{field.name}")'
        if field.optional:
            part = f"{part} if len(parts) > {number} else None"
        values.append(f"{field.name}={part}")
    yield f"    return cls({', '.join(values)})"
    yield "def to_text(self) -> str:"
    yield '    """The line, without its end. Raises LocalProtocolError when a field holds the separator."""'
    parts = ", ".join(f"self.{field.name}" for field in message.fields)
    yield f'    return join_fields(({parts}), "{message.separator}", "{what}")'
    yield "@classmethod"
    yield "def decode(cls, data: bytes) -> Self:"
    yield f'    """The {what} that a file of one line is. Raises RemoteProtocolError."""'
    ended = message.end_of_line
    yield f'    return cls.from_text("\\n".join(split_lines(data, {ended}, "{what}")))'
    yield "def encode(self) -> bytes:"
    yield '    """The bytes of that file."""'
    yield "    return self.to_text().encode()" if not ended else '    return f"{self.to_text()}\\n".encode()'


def _checks(what: str, heads: list[Field]) -> Iterator[str]:
    """Lines that compare the checksums of `message` with what its own text gives."""
    for field in heads:
        if field.checksum:
            check = f'agree({field.name}, message._{field.name}_computed(), "{what}.{field.name}")'
            if field.checksum.zero_unchecked:
                yield f"    if {field.name} != 0:"
                yield f"        {check}"
            else:
                yield f"    {check}"


def _file_members(message: Message) -> Iterator[str]:
    what = message.name
    heads = [field for field in message.fields if not field.repeated]
    body = next(field for field in message.fields if field.repeated)
    yield "@classmethod"
    yield "def decode(cls, data: bytes) -> Self:"
    yield f'    """The {what} that the bytes are. Raises RemoteProtocolError, for a wrong checksum too."""'
    yield f'    lines = split_lines(data, {message.end_of_line}, "{what}")'
    if heads:
        yield f'    at_least(len(lines), {len(heads)}, "{what}")'
    for number, field in enumerate(heads):
        bounds = _BOUNDS[field.type]
        yield f'    {field.name} = parse_integer(lines[{number}], {bounds}, "{what}.{field.name}")'
    yield f"    {body.name} = [{body.type}.from_text(line) for line in lines[{len(heads)}:]]"
    for field in heads:
        if field.counts:
            yield f'    agree({field.name}, len({field.counts}), "{what}.{field.name}")'
    arguments = ", ".join(f"{field.name}={field.name}" for field in text_attributes(message))
    if not any(field.checksum for field in heads):
        yield f"    return cls({arguments})"
    else:
        yield f"    message = cls({arguments})"
        yield from _checks(what, heads)
        yield "    return message"
    yield "def encode(self) -> bytes:"
    yield f'    """The bytes of the {what}; counts are derived, and a checksum that is None."""'
    values = []
    for field in heads:
        if field.counts:
            values.append(f"str(len(self.{field.counts}))")
        elif field.checksum:
            given, computed = f"self.{field.name}", f"self._{field.name}_computed()"
            yield f"    {field.name} = {computed} if {given} is None else {given}"
            values.append(f"str({field.name})")
        else:
            values.append(f"str(self.{field.name})")
    yield f"    lines = [{', '.join([*values, f'*(item.to_text() for item in self.{body.name})'])}]"
    yield f"    return join_lines(lines, {message.end_of_line})"
    for field in heads:
        if field.checksum:
            yield f"def _{field.name}_computed(self) -> int:"
            yield f"    lines = [item.to_text() for item in self.{field.checksum.over}]"
            yield f"    return crc32(join_lines(lines, {message.end_of_line}), {field.checksum.mask})"
