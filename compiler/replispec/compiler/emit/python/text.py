"""Python codecs of TEXT messages: fields between separators, or one field a line."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.keyed import BOUNDS
from replispec.compiler.emit.python.tree import DATACLASSES, PRIMITIVES, TYPING, FunctionDef, Names, own
from replispec.compiler.model.layout import derived_fields, is_constant
from replispec.compiler.model.message import Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_TEXTS = Names(f"{PRIMITIVES}.texts")
_PROPERTIES = Names(f"{PRIMITIVES}.property_files")


def text_attributes(message: Message) -> list[Field]:
    """The fields that become attributes: all but derived counts and constants."""
    derived = derived_fields(message)
    return [field for field in message.fields if field.name not in derived and not is_constant(field)]


def text_attribute(field: Field) -> tuple[str, str]:
    """Type and default of the attribute of a text field."""
    if field.repeated:
        return f"list[{own(field.type)}]", f"{DATACLASSES.field}(default_factory=list)"
    if field.type == "string":
        return ("str | None", "None") if field.optional else ("str", '""')
    return ("int | None", "None") if field.checksum else ("int", "0")


def text_members(message: Message) -> list[FunctionDef]:
    """The methods that read and write the text form."""
    if message.properties:
        return _property_members(message)
    return _line_members(message) if message.separator else _file_members(message)


def _property_members(message: Message) -> list[FunctionDef]:
    """A file of Java's properties: what is not known of it is kept and written back."""
    what = message.name
    lines = [f'values = {_PROPERTIES.read_named}(data, "{what}")']
    for field in message.fields:
        taken = f'{_PROPERTIES.take_named}(values, "{field.key}", "{what}")'
        if field.optional:
            taken = f'values.pop("{field.key}", None)'
        number = _integer("text", field, what) if field.type in BOUNDS else ""
        if not number:
            lines.append(f"{field.name} = {taken}")
        elif field.optional:
            lines += [f"text = {taken}", f"{field.name} = None if text is None else {number}"]
        else:
            lines += [f"text = {taken}", f"{field.name} = {number}"]
        lines += _checked(field, what)
    arguments = ", ".join(f"{field.name}={field.name}" for field in text_attributes(message))
    said = ", ".join(f'"{each.key}": {_said(each)}' for each in message.fields)
    return [
        FunctionDef(
            "decode",
            "cls, data: bytes",
            str(TYPING.Self),
            [*lines, f"return cls({arguments}, unknown=values)"],
            f"The {what} that the bytes are. Raises RemoteProtocolError.",
            ["classmethod"],
        ),
        FunctionDef(
            "encode",
            "self",
            "bytes",
            [f"return {_PROPERTIES.write_named}({{{said}}}, self.unknown)"],
            "The bytes of that file, without a comment.",
        ),
    ]


def _said(field: Field) -> str:
    return str(field.equals) if is_constant(field) else f"self.{field.name}"


def _checked(field: Field, what: str) -> Iterator[str]:
    """Lines that refuse another number than the constant, which is no attribute."""
    if is_constant(field):
        yield f'{_TEXTS.must_be}({field.name}, {field.equals}, "{what}.{field.name}")'


def _line_members(message: Message) -> list[FunctionDef]:
    what = message.name
    parts = "".join(f"self.{field.name}, " for field in message.fields)
    ended = message.end_of_line
    one_line = f'"\\n".join({_TEXTS.split_lines}(data, "{what}", end_of_line={ended}))'
    return [
        FunctionDef(
            "from_text",
            "cls, text: str",
            str(TYPING.Self),
            list(_from_line(message)),
            f"The {what} that one line (without its end) is. Raises RemoteProtocolError.",
            ["classmethod"],
        ),
        FunctionDef(
            "to_text",
            "self",
            "str",
            [f'return {_TEXTS.join_fields}(({parts}), "{message.separator}", "{what}")'],
            "The line, without its end. Raises LocalProtocolError when a field holds the separator.",
        ),
        FunctionDef(
            "decode",
            "cls, data: bytes",
            str(TYPING.Self),
            [f"return cls.from_text({one_line})"],
            f"The {what} that a file of one line is. Raises RemoteProtocolError.",
            ["classmethod"],
        ),
        FunctionDef(
            "encode",
            "self",
            "bytes",
            ['return f"{self.to_text()}\\n".encode()' if ended else "return self.to_text().encode()"],
            "The bytes of that file.",
        ),
    ]


def _from_line(message: Message) -> Iterator[str]:
    what = message.name
    required = sum(not field.optional for field in message.fields)
    numbers = f"{required}, {len(message.fields)}"
    yield f'parts = {_TEXTS.split_fields}(text, "{message.separator}", {numbers}, "{what}")'
    values = []
    for number, field in enumerate(message.fields):
        part = f"parts[{number}]"
        if field.type in BOUNDS:
            part = _integer(part, field, what)
        if field.optional:
            part = f"{part} if len(parts) > {number} else None"
        values.append(f"{field.name}={part}")
    yield f"return cls({', '.join(values)})"


def _integer(text: str, field: Field, what: str) -> str:
    bounds = str(getattr(_TEXTS, BOUNDS[field.type]))
    if field.minimum is not None or field.maximum is not None:
        low = f"{bounds}[0]" if field.minimum is None else str(field.minimum)
        high = f"{bounds}[1]" if field.maximum is None else str(field.maximum)
        bounds = f"({low}, {high})"
    return f'{_TEXTS.parse_integer}({text}, {bounds}, "{what}.{field.name}")'


def _checks(what: str, heads: list[Field]) -> Iterator[str]:
    """Lines that compare the checksums of `message` with what its own text gives."""
    for field in heads:
        if field.checksum:
            check = f'{_TEXTS.agree}({field.name}, message._{field.name}_computed(), "{what}.{field.name}")'
            if field.checksum.zero_unchecked:
                yield f"if {field.name} != 0:"
                yield f"    {check}"
            else:
                yield check


def _file_members(message: Message) -> list[FunctionDef]:
    heads = [field for field in message.fields if not field.repeated]
    body = next(field for field in message.fields if field.repeated)
    computed = [
        FunctionDef(
            f"_{field.name}_computed",
            "self",
            "int",
            [
                f"lines = [item.to_text() for item in self.{field.checksum.over}]",
                f"text = {_TEXTS.join_lines}(lines, end_of_line={message.end_of_line})",
                f"return {_BINARY.crc32}(text, {field.checksum.mask})",
            ],
        )
        for field in heads
        if field.checksum
    ]
    return [
        FunctionDef(
            "decode",
            "cls, data: bytes",
            str(TYPING.Self),
            list(_from_file(message, heads, body)),
            f"The {message.name} that the bytes are. Raises RemoteProtocolError, for a wrong checksum too.",
            ["classmethod"],
        ),
        FunctionDef(
            "encode",
            "self",
            "bytes",
            list(_to_file(message, heads, body)),
            f"The bytes of the {message.name}; counts are derived, and a checksum that is None.",
        ),
        *computed,
    ]


def _from_file(message: Message, heads: list[Field], body: Field) -> Iterator[str]:
    what = message.name
    yield f'lines = {_TEXTS.split_lines}(data, "{what}", end_of_line={message.end_of_line})'
    if heads:
        yield f'{_TEXTS.at_least}(len(lines), {len(heads)}, "{what}")'
    for number, field in enumerate(heads):
        yield f"{field.name} = {_integer(f'lines[{number}]', field, what)}"
        yield from _checked(field, what)
    yield f"{body.name} = [{own(body.type)}.from_text(line) for line in lines[{len(heads)}:]]"
    for field in heads:
        if field.counts:
            yield f'{_TEXTS.agree}({field.name}, len({field.counts}), "{what}.{field.name}")'
    arguments = ", ".join(f"{field.name}={field.name}" for field in text_attributes(message))
    if not any(field.checksum for field in heads):
        yield f"return cls({arguments})"
        return
    yield f"message = cls({arguments})"
    yield from _checks(what, heads)
    yield "return message"


def _to_file(message: Message, heads: list[Field], body: Field) -> Iterator[str]:
    values = []
    for field in heads:
        if is_constant(field):
            values.append(f'"{field.equals}"')
        elif field.counts:
            values.append(f"str(len(self.{field.counts}))")
        elif field.checksum:
            given, computed = f"self.{field.name}", f"self._{field.name}_computed()"
            yield f"{field.name} = {computed} if {given} is None else {given}"
            values.append(f"str({field.name})")
        else:
            values.append(f"str(self.{field.name})")
    yield f"lines = [{', '.join([*values, f'*(item.to_text() for item in self.{body.name})'])}]"
    yield f"return {_TEXTS.join_lines}(lines, end_of_line={message.end_of_line})"
