"""Python modules of one family's messages: codecs, numbers, streams and the table of commands.

Pure functions of the model and the sources' bytes; the driver writes and formats what they return.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python import binary as emit_binary
from replispec.compiler.emit.python import fields as emit_fields
from replispec.compiler.emit.python import fixed as emit_fixed
from replispec.compiler.emit.python import text as emit_text
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.model.message import Field, Message, Model, When

# Columns of a docstring's text.
WIDTH = 96

PRIMITIVES = {
    "binary": (
        "Buffer check_distinct check_known check_range crc32 cut exactly excluded must_be_distinct must_be_in"
        " need outside pack read_count read_nullable read_number read_numbers read_prefix read_text"
        " read_text_map required to_unsigned write_none write_numbers write_prefix write_text_map"
    ),
    "jsons": (
        "bare_key dumps holds_text loads name_of number_of present take_bool take_ext_fields take_list"
        " take_integer take_integer_map take_map take_named take_object take_optional take_string"
        " unknown_keys"
    ),
    "orders": "hash_ordered",
    "plain_json": "integer_within NOT_PLAIN OPTIONAL_TEXT OPTIONAL_TEXTS plain_reader",
    "texts": (
        "INT32 INT64 UINT32 agree at_least bool_text join_fields join_lines optional_bool optional_integer"
        " parse_integer split_fields split_lines"
    ),
}
STANDARD = {
    "collections.abc": "Mapping",
    "dataclasses": "dataclass field",
    "struct": "Struct",
    "typing": "ClassVar NamedTuple Self",
}


def module_text(model: Model, module: str, sources: Mapping[str, bytes]) -> str:
    """The Python text (unformatted) of all messages of one .proto file.

    `sources` holds the specification's files that decide the text, for the certificate of birth.
    """
    messages = [message for message in model.messages.values() if message.module == module]
    zeros = {
        enum.name: next((v.name for v in enum.values if v.number == 0), "") for enum in model.enums.values()
    }
    classes = [line for message in messages for line in [*_class(message, zeros), "", ""]]
    body = "\n".join(classes)
    code = re.sub(r'"""(?s:.*?)"""', "", body)
    enums = sorted(name for name in model.enums if _uses(code, name))
    others = sorted(
        (other.module, other.name)
        for other in model.messages.values()
        if other.module != module and _uses(code, other.name)
    )
    lines = [
        *certificate(sources),
        f'"""Messages of {module}.proto of {model.family}."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    plain = [line for item in messages if item.also for line in emit_fields.plain_readers(item, zeros)]
    lines += _imports("\n".join([code, *plain]), model.family, enums, others)
    for message in messages:
        if message.layout == "BINARY":
            lines += emit_binary.structs(message)
    lines += plain
    return "\n".join([*lines, "", "", body]).rstrip() + "\n"


def _uses(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.\"]){re.escape(name)}\b", text) is not None


def _imports(code: str, family: str, enums: list[str], others: list[tuple[str, str]]) -> Iterator[str]:
    for module, names in STANDARD.items():
        used = [
            name
            for name in names.split()
            if _uses(code, name) or (name == "Struct" and ".unpack_from" in code)
        ]
        if used:
            yield f"from {module} import {', '.join(used)}"
    yield ""
    for module, names in PRIMITIVES.items():
        used = [name for name in names.split() if _uses(code, name)]
        if used:
            yield f"from replispec.runtime.primitives.{module} import {', '.join(used)}"
    if enums:
        yield f"from replispec.wire.{family}.codes import {', '.join(enums)}"
    for module, name in others:
        yield f"from replispec.wire.{family}.{module} import {name}"
    yield ""


def _class(message: Message, zeros: Mapping[str, str]) -> Iterator[str]:
    if message.layout == "BINARY" and message.fixed:
        yield from emit_fixed.fixed_class(message)
        yield ""
        yield ""
    yield "@dataclass(slots=True)"
    yield f"class {message.name}:"
    yield from ("    " + line if line else "" for line in _docstring(message))
    yield ""
    for field, kind, default in _attributes(message, zeros):
        yield f"    {field.name}: {kind} = {default}"
    if (message.layout in ("REMOTING_HEADER", "JSON") and not message.bare) or message.also == "JSON":
        values = "str | None" if message.layout == "REMOTING_HEADER" else "object"
        yield f"    unknown: dict[str, {values}] = field(default_factory=dict)"
    if (message.layout in ("REMOTING_HEADER", "JSON") and not message.bare) or message.also == "JSON":
        yield f"    {emit_fields.keys_line(message)}"
    for constant in (
        item for item in message.fields if item.equals is not None and message.layout == "BINARY"
    ):
        yield f"    {constant.name}: ClassVar[int] = {constant.equals}"
    if message.codes:
        yield f"    CODES: ClassVar[tuple[int, ...]] = ({', '.join(map(str, message.codes))},)"
    yield ""
    for line in _members(message):
        if line.startswith(("@", "def ")):
            yield ""
        yield "    " + line if line else ""


def _attributes(message: Message, zeros: Mapping[str, str]) -> Iterator[tuple[Field, str, str]]:
    if message.layout == "BINARY":
        for field in emit_binary.attributes(message):
            yield field, emit_binary.attribute_type(field), emit_binary.attribute_default(field, zeros)
    elif message.layout == "TEXT":
        for field in emit_text.text_attributes(message):
            yield field, *emit_text.text_attribute(field)
    else:
        describe = (
            emit_fields.header_attribute
            if message.layout == "REMOTING_HEADER"
            else emit_fields.json_attribute
        )
        for field in message.fields:
            yield field, *describe(field)


def _members(message: Message) -> Iterator[str]:
    if message.layout == "BINARY":
        yield from emit_binary.members(message, "_binary" if message.also else "")
        if message.also:
            yield from emit_fields.second_json_members(message)
    elif message.layout == "TEXT":
        yield from emit_text.text_members(message)
    elif message.layout == "REMOTING_HEADER":
        yield from emit_fields.header_members(message)
    else:
        yield from emit_fields.json_members(message)


def _docstring(message: Message) -> Iterator[str]:
    """What it is, one line a field with unit, size and releases, and the clauses."""
    about = message.about or f"{message.name}, as {message.kind.lower() or message.layout.lower()}."
    first, *rest = textwrap.wrap(_clean(about), WIDTH)
    yield f'"""{first}'
    yield from rest
    yield ""
    if message.codes:
        yield f"Request code {', '.join(map(str, message.codes))}; {message.sender} to {message.receiver}."
    for given in message.given:
        yield f"Given: {given.name} {given.first}..{given.last}."
    for field in message.fields:
        yield from textwrap.wrap(
            f"{field.name}: {_clean(describe_field(field))}", WIDTH, subsequent_indent="    "
        )
    if message.clauses:
        yield f"Clauses: {', '.join(message.clauses)}."
    yield '"""'


def describe_field(field: Field) -> str:
    """Type, bytes, key, unit, releases and meaning of a field in one line."""
    kind = f"map of {field.map_key} to {field.map_value}" if field.type == "map" else field.type
    facts = [f"list of {kind}" if field.repeated else kind]
    if field.size:
        facts.append(f"{field.size} bytes each" if field.repeated else f"{field.size} bytes")
    if field.prefix:
        facts.append(f"length of {field.prefix} bytes before it")
    if field.nullable:
        facts.append("a length of -1: none")
    if field.distinct:
        facts.append("all distinct")
    if field.when:
        facts.append(f"there when {describe_when(field.when)}")
    if field.unit:
        facts.append(field.unit.lower().replace("_", " "))
    if field.versions:
        facts.append(str(field.versions))
    text = ", ".join(facts)
    return f"{text}; {field.about}" if field.about else text


def describe_when(when: When) -> str:
    """The condition under which a field is there, in words."""
    if when.minimum == when.maximum:
        return f"{when.field} is {when.minimum}"
    if when.maximum is None:
        return f"{when.field} is {when.minimum} or more"
    if when.minimum is None:
        return f"{when.field} is {when.maximum} or less"
    return f"{when.field} is {when.minimum} to {when.maximum}"


def _clean(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''")
