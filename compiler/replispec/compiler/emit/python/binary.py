"""Python codecs of BINARY messages: straight-line code, one struct per run of fixed fields.

A message that is `hot` spells out what others call functions of the runtime for.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from replispec.compiler.emit.python import zigzag
from replispec.compiler.emit.python.binary_fields import (
    attribute_type,
    attributes,
    base,
    checksum_of,
    condition,
    constant_name,
    identities,
    is_empty,
    is_lone_number,
    is_named,
    is_plain,
)
from replispec.compiler.emit.python.binary_writing import encode_lines
from replispec.compiler.emit.python.tree import (
    PRIMITIVES,
    TYPING,
    FunctionDef,
    Names,
    own,
)
from replispec.compiler.model.layout import (
    Step,
    VariablePart,
    bounds,
    derived_fields,
    end_in_fixed,
    is_constant,
    is_inner,
    is_last_number,
    is_number_list,
    is_text_list,
    steps,
)
from replispec.compiler.model.message import AFTER, Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_RUNS = Names(f"{PRIMITIVES}.runs")
_JSONS = Names(f"{PRIMITIVES}.jsons")
_STRUCT = Names("struct")


def members(message: Message, suffix: str) -> Iterator[FunctionDef]:
    """The methods that read and write the binary form.

    `suffix` is appended to the names `decode` and `encode` when a message has two encodings.
    """
    if is_empty(message):
        return
    if not base(message):
        yield _decode_whole(message, suffix)
    yield FunctionDef(
        f"decode{suffix}_at",
        f"cls, buffer: {_BINARY.Buffer}, at: int, end: int{_parameters(message)}",
        f"tuple[{TYPING.Self}, int]",
        list(_decode_at(message)),
        decorators=["classmethod"],
    )
    yield FunctionDef(f"encode{suffix}", f"self{_parameters(message)}", "bytes", list(encode_lines(message)))
    yield from _properties(message)


def _decode_whole(message: Message, suffix: str) -> FunctionDef:
    passed = "".join(f", {each.name}={each.name}" for each in message.given)
    return FunctionDef(
        f"decode{suffix}",
        f"cls, buffer: {_BINARY.Buffer}, at: int = 0, end: int | None = None{_parameters(message)}",
        str(TYPING.Self),
        [
            "limit = len(buffer) if end is None else end",
            f"message, position = cls.decode{suffix}_at(buffer, at, limit{passed})",
            "if position != limit:",
            f'    {_BINARY.exactly}(position, limit, "{message.name}")',
            "return message",
        ],
        f"The {message.name} that fills `buffer[at:end]`. Raises RemoteProtocolError.",
        ["classmethod"],
    )


def _decode_at(message: Message) -> Iterator[str]:
    if any(field.measures and not field.zigzag for field in message.fields):
        yield "start = at"
    for each in message.given:
        what = f'"{message.name}: {each.name}"'
        yield f"{_BINARY.check_range}({each.name}, {each.first}, {each.last}, at, {what})"
    found = steps(message)
    if not found:
        yield "del buffer, end"
    for number, step in enumerate(found):
        yield from _decode_step(message, number, step)
    if zigzag.measured(message):
        yield f'{_BINARY.exactly}(at, end, "{message.name}")'
    yield f"return cls({_arguments(message)}), at"


def _arguments(message: Message) -> str:
    """The arguments that make the message, in the order of its attributes: by position, which costs less
    than by name, up to the first one that only the JSON form has."""
    found = attributes(message)
    plain = len(list(takewhile(lambda field: not field.json_only, found)))
    named = (f"{field.name}={field.name}" for field in found[plain:] if not field.json_only)
    return ", ".join([*(field.name for field in found[:plain]), *named])


def _guard(condition: str, fault: str) -> Iterator[str]:
    """Lines that raise a fault; the condition stands in line, as a call for every field would cost more."""
    yield f"if {condition}:"
    yield f"    raise {fault}"


def _guard_range(value: str, low: int, high: int, what: str) -> Iterator[str]:
    condition = f"{value} != {low}" if low == high else f"not {low} <= {value} <= {high}"
    yield from _guard(condition, f"{_BINARY.outside}({value}, {low}, {high}, at, {what})")


def _parameters(message: Message) -> str:
    """The parameters for the numbers that the message must be given."""
    return "".join([", *", *(f", {each.name}: int" for each in message.given)]) if message.given else ""


def _decode_step(message: Message, number: int, step: Step) -> Iterator[str]:
    if isinstance(step, VariablePart):
        yield from _decode_variable(message, step.field)
        return
    what, layout = f'"{message.name}"', constant_name(message, number)
    names = ", ".join(field.name for field in step.fields) + ("," if len(step.fields) == 1 else "")
    if message.hot:
        yield from _guard(f"end - at < {step.size}", f"{_BINARY.cut}(at, {step.size}, end, {what})")
        yield f"{names} = {layout}.unpack_from(buffer, at)"
    elif is_lone_number(message, step):
        field = step.fields[0]
        yield _read_number(field, field.name, f'"{message.name}.{field.name}"')
    else:
        yield f"({names}), at = {_BINARY.unpack}({layout}, buffer, at, end, {what})"
    for field in step.fields:
        yield from _decode_checks(message, field, "at" if message.hot else f"at - {step.size}")
    if message.hot:
        yield f"at += {step.size}"


def _read_number(field: Field, name: str, what: str) -> str:
    signed = field.type != "uint32"
    return f"{name}, at = {_BINARY.read_number}(buffer, at, {field.size}, {signed}, end, {what})"


def _decode_checks(message: Message, field: Field, at: str) -> Iterator[str]:
    """Lines that make of the number what it means, and refuse what it must not be; `at` is where it lay."""
    what = f'"{message.name}.{field.name}"'
    if field.type == "bytes":
        yield from ()
    elif field.size == 3:
        yield f'{field.name} = int.from_bytes({field.name}, "big")'
    if field.type == "bool" and field.minimum is None and field.maximum is None:
        yield f"{field.name} = {field.name} == 1"
    if is_named(field):
        yield f"{field.name} = {_JSONS.name_of}({field.name}, {own(field.enum)})"
    if field.is_enum and not is_constant(field):
        yield f"{_BINARY.check_known}({field.name}, {own(field.type)}, {at}, {what})"
    if field.among:
        yield f"{_BINARY.check_among}({field.name}, {field.among!r}, {at}, {what})"
    low, high = (field.equals, field.equals) if is_constant(field) else (field.minimum, field.maximum)
    if low is not None or high is not None:
        edge = 8 * field.size - 1
        low, high = -(1 << edge) if low is None else low, (1 << edge) - 1 if high is None else high
        if message.hot:
            yield from _guard_range(field.name, low, high, what)
        else:
            yield f"{_BINARY.check_range}({field.name}, {low}, {high}, {at}, {what})"
        if field.type == "bool":
            yield f"{field.name} = {field.name} == 1"
    if field.measures:
        itself = f" + {end_in_fixed(message, field)}" if field.measures == AFTER else ""
        yield from _guard(
            f"not 0 <= {field.name}{itself} <= end - start",
            f"{_BINARY.cut}(start, {field.name}{itself}, end, {what})",
        )
        yield f"end = start + {field.name}{itself}"


def _size_expression(field: Field) -> str:
    if field.length:
        return "end - at" if field.length == "rest" else field.length
    if field.wider is None:
        return str(field.size)
    wider = field.wider
    return f"{wider.size} if {wider.field} & {wider.mask} == {wider.equals} else {field.size}"


def _decode_variable(message: Message, field: Field) -> Iterator[str]:
    if is_last_number(field):
        yield f"{field.name}: {attribute_type(field)} = None"
        yield "if at < end:"
        yield from ("    " + line for line in _decode_lone_number(field, f'"{message.name}.{field.name}"'))
        return
    if field.when is None:
        yield from _decode_present(message, field)
        return
    yield f"{field.name}: {attribute_type(field)} = None"
    yield f"if {condition(field)}:"
    yield from ("    " + line for line in _decode_present(message, field))


def _decode_present(message: Message, field: Field) -> Iterator[str]:
    """Lines that read a field that is there."""
    what = f'"{message.name}.{field.name}"'
    if is_inner(field):
        yield f"{field.name}, at = {own(field.type)}.decode_at(buffer, at, end{_passed(field)})"
        return
    if field.until:
        read = f"{own(field.type)}.decode_at, {own(field.until)}().encode()"
        yield f"{field.name}, at = {_RUNS.read_run}({read}, buffer, at, end, {what}{_passed(field)})"
        return
    if field.count:
        yield from _decode_list(message, field, what)
        return
    if zigzag.is_zigzag_number(field):
        yield from zigzag.decode_number(field, what)
        return
    if field.when is not None and field.size and field.type != "bytes":
        yield from _decode_lone_number(field, what)
        return
    if not message.hot and is_plain(field):
        yield _decode_plain(field, what)
        return
    if field.prefix:
        yield from _decode_prefix(field, what)
    elif field.repeated:
        block = f"{own(field.type)}.decode_at, buffer, at, {_size_expression(field)}, end, {what}"
        yield f"{field.name}, at = {_BINARY.read_block}({block})"
        return
    elif field.length == "rest" and field.type == "bytes":
        yield from _guard("at > end", f"{_BINARY.cut}(at, 0, end, {what})")
        yield f"{field.name} = bytes(buffer[at:end])"
        yield "at = end"
        return
    else:
        yield f"size = {_size_expression(field)}"
    if not field.nullable:
        yield from _guard("not 0 <= size <= end - at", f"{_BINARY.cut}(at, size, end, {what})")
        yield from _decode_content(field, what)
        return
    if field.when is None:
        yield f"{field.name}: {attribute_type(field)} = None"
    yield "if size >= 0:"
    yield f"    {_BINARY.need}(at, size, end, {what})"
    yield from ("    " + line for line in _decode_content(field, what))


def _decode_plain(field: Field, what: str) -> str:
    if field.type == "string":
        return f"{field.name}, at = {_BINARY.read_string}(buffer, at, {field.prefix}, end, {what})"
    return f"{field.name}, at = {_BINARY.read_bytes}(buffer, at, {_size_expression(field)}, end, {what})"


def _decode_list(message: Message, field: Field, what: str) -> Iterator[str]:
    """Lines that read a count and as many elements."""
    if field.zigzag:
        yield zigzag.decode_length(field, "count", what)
        if not field.nullable:
            yield from _decode_elements(message, field, what)
            return
    elif not field.nullable:
        yield from _decode_counted(field, what)
        return
    else:
        yield f"count, at = {_BINARY.read_nullable}(buffer, at, {field.count}, end, {what})"
    if field.when is None:
        yield f"{field.name}: {attribute_type(field)} = None"
    yield "if count >= 0:"
    yield f"    {_BINARY.need}(at, count, end, {what})"
    yield from ("    " + line for line in _decode_elements(message, field, what))


def _decode_elements(message: Message, field: Field, what: str) -> Iterator[str]:
    """Lines that read as many elements as were counted."""
    if is_number_list(field):
        numbers = f"buffer, at, count, {field.size}, {field.type != 'uint32'}, end, {what}"
        yield f"{field.name}, at = {_BINARY.read_numbers}({numbers})"
    elif is_text_list(field):
        texts = f"buffer, at, count, {field.prefix}, end, {what}"
        yield f"{field.name}, at = {_BINARY.read_strings}({texts})"
    else:
        alone = sum(other.repeated and other.is_message for other in message.fields) == 1
        element = "element" if alone else f"{field.name}_element"
        yield f"{field.name} = []"
        yield "for _ in range(count):"
        yield f"    {element}, at = {own(field.type)}.decode_at(buffer, at, end{_passed(field)})"
        yield f"    {field.name}.append({element})"
    yield from _decode_distinct(field, what)


def _decode_counted(field: Field, what: str) -> Iterator[str]:
    """Lines that read a list that is there."""
    if is_number_list(field):
        numbers = f"buffer, at, {field.count}, {field.size}, {field.type != 'uint32'}, end, {what}"
        yield f"{field.name}, at = {_BINARY.read_number_list}({numbers})"
        yield from _decode_distinct(field, what)
        return
    if is_text_list(field):
        texts = f"buffer, at, {field.count}, {field.prefix}, end, {what}"
        yield f"{field.name}, at = {_BINARY.read_string_list}({texts})"
        yield from _decode_distinct(field, what)
        return
    reader = _BINARY.read_distinct if field.distinct else _BINARY.read_list
    elements = f"{own(field.type)}.decode_at, buffer, at, {field.count}, end, {what}{_passed(field)}"
    yield f"{field.name}, at = {reader}({elements})"


def _passed(field: Field) -> str:
    return "".join(f", {name}={name}" for name in field.passes)


def _decode_distinct(field: Field, what: str) -> Iterator[str]:
    if field.distinct:
        yield f"{_BINARY.check_distinct}({identities(field, field.name)}, at, {what})"


def _decode_lone_number(field: Field, what: str) -> Iterator[str]:
    number = "number" if field.type == "bool" else field.name
    yield _read_number(field, number, what)
    if field.minimum is not None or field.maximum is not None:
        low, high = bounds(field)
        yield f"{_BINARY.check_range}({number}, {low}, {high}, at, {what})"
    if field.type == "bool":
        yield f"{field.name} = {number} == 1"


def _decode_prefix(field: Field, what: str) -> Iterator[str]:
    prefix = str(field.prefix)
    if field.wider is not None:
        wider = field.wider
        prefix = f"{wider.size} if {wider.field} & {wider.mask} == {wider.equals} else {field.prefix}"
    reader = _BINARY.read_nullable if field.nullable else _BINARY.read_prefix
    if field.zigzag:
        yield zigzag.decode_length(field, "size", what)
    else:
        yield f"size, at = {reader}(buffer, at, {prefix}, end, {what})"
    if field.minimum is not None or field.maximum is not None:
        high = (1 << 31) - 1 if field.maximum is None else field.maximum
        low = field.minimum or 0
        if field.nullable:
            absent = f"size != -1 and not {low} <= size <= {high}"
            yield from _guard(absent, f"{_BINARY.outside}(size, {low}, {high}, at, {what})")
        else:
            yield f"{_BINARY.check_range}(size, {low}, {high}, at, {what})"


def _decode_content(field: Field, what: str) -> Iterator[str]:
    if field.type == "map":
        prefixes = f"{field.key_prefix}, {field.value_prefix}"
        yield f"entries, at = {_BINARY.read_text_map}(buffer, at, at + size, {prefixes}, {what})"
        yield f"{field.name} = entries or None" if field.optional else f"{field.name} = entries"
        return
    if field.repeated:
        yield f"{field.name} = []"
        yield "block_end = at + size"
        yield "while at < block_end:"
        yield f"    element, at = {own(field.type)}.decode_at(buffer, at, block_end)"
        yield f"    {field.name}.append(element)"
        return
    if field.type == "string":
        text = f"{_BINARY.read_text}(buffer, at, size, {what})"
        yield f"{field.name} = {text} if size else None" if field.optional else f"{field.name} = {text}"
    else:
        yield f"{field.name} = bytes(buffer[at : at + size])"
    yield "at += size"


def _properties(message: Message) -> Iterator[FunctionDef]:
    """Derived numbers, checksums and what identifies the message among others, as properties."""
    keys = [field.name for field in message.fields if field.identifies]
    if keys:
        about = f"What tells one {message.name} from another of the same list."
        value = f"({', '.join(f'self.{name}' for name in keys)},)"
        yield _property("identity", "tuple[object, ...]", value, about)
    by_name = {field.name: field for field in message.fields}
    for name, kind in derived_fields(message).items():
        if not kind.startswith("length:"):
            continue
        over = by_name[kind.removeprefix("length:")]
        value = f"len(self.{over.name})"
        if over.repeated:
            value = f"sum(len(element.encode()) for element in self.{over.name})"
        yield _property(name, "int", value, by_name[name].about or f"Bytes of {over.name}.")
    for field in message.fields:
        if field.checksum and field.size:
            summed = "what comes after it" if field.checksum.over == AFTER else field.checksum.over
            about = f"True when {field.name} is absent or the checksum of {summed}."
            expected = checksum_of(message, field, f"self.{field.checksum.over}", "self.encode()")
            value = f"self.{field.name} is None or self.{field.name} == {expected}"
            yield _property(f"{field.name}_holds", "bool", value, about)


def _property(name: str, returns: str, value: str, about: str) -> FunctionDef:
    return FunctionDef(name, "self", returns, [f"return {value}"], about, ["property"])
