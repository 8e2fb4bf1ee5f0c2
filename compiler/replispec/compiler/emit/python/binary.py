"""Python codecs of BINARY messages: straight-line code, one struct per run of fixed fields.

A message that is `hot` spells out what others call functions of the runtime for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from replispec.compiler.emit.python.tree import (
    DATACLASSES,
    PRIMITIVES,
    TYPING,
    Constant,
    FunctionDef,
    Names,
    own,
)
from replispec.compiler.model.layout import (
    FixedRun,
    Step,
    VariablePart,
    bounds,
    derived_fields,
    is_constant,
    is_number_list,
    steps,
    wire_fields,
)
from replispec.compiler.model.message import Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_JSONS = Names(f"{PRIMITIVES}.jsons")
_STRUCT = Names("struct")


def constant_name(message: Message, number: int) -> str:
    """Name of the module's struct for the message's run of this number."""
    words = "".join("_" + c if c.isupper() else c for c in message.name).strip("_").upper()
    return f"_{words}_{number}"


def structs(message: Message) -> list[Constant]:
    """The module's structs of the message's fixed runs."""
    return [
        Constant(constant_name(message, number), f'{_STRUCT.Struct}(">{step.format}")')
        for number, step in enumerate(steps(message))
        if isinstance(step, FixedRun)
    ]


def attribute_type(field: Field) -> str:
    """The Python type of the attribute that holds the field in a BINARY message."""
    if field.type == "map":
        return "dict[str, str | None] | None" if field.optional else "dict[str, str | None]"
    if field.repeated:
        elements = f"list[{'int' if is_number_list(field) else own(field.type)}]"
        return f"{elements} | None" if may_be_none(field) else elements
    base = "str" if is_named(field) else {"string": "str", "bytes": "bytes", "bool": "bool"}.get(field.type)
    if base is None:
        base = str(own(field.type)) if field.is_message else "int"
    return f"{base} | None" if (field.optional or field.checksum or may_be_none(field)) else base


def may_be_none(field: Field) -> bool:
    """True when the message may lack the field, or say that there is none."""
    return field.when is not None or field.nullable


def attribute_default(field: Field, named: Mapping[str, str]) -> str:
    """The default of that attribute; `named` maps an enum to the name of its value 0."""
    if field.optional or field.checksum or may_be_none(field):
        return "None"
    if field.type == "map":
        return f"{DATACLASSES.field}(default_factory=dict)"
    if field.repeated:
        return f"{DATACLASSES.field}(default_factory=list)"
    if is_named(field):
        return f'"{named[field.enum]}"'
    return {"string": '""', "bytes": 'b""', "bool": "False"}.get(field.type, "0")


def is_named(field: Field) -> bool:
    """True for a byte whose value the JSON form gives by name: the attribute holds the name."""
    return bool(field.enum) and not field.is_enum and field.name_in_json


def attributes(message: Message) -> list[Field]:
    """The fields that become attributes: neither constant nor derived."""
    derived = derived_fields(message)
    return [field for field in message.fields if field.name not in derived and not is_constant(field)]


def base(message: Message) -> str:
    """The class of the runtime that reads a whole buffer; none for a message with two encodings."""
    if message.also:
        return ""
    given = [each.name for each in message.given]
    if given == ["version"]:
        return str(_BINARY.VersionedBinary)
    return "" if given else str(_BINARY.BinaryMessage)


def members(message: Message, suffix: str) -> Iterator[FunctionDef]:
    """The methods that read and write the binary form.

    `suffix` is appended to the names `decode` and `encode` when a message has two encodings.
    """
    if not base(message):
        yield _decode_whole(message, suffix)
    yield FunctionDef(
        f"decode{suffix}_at",
        f"cls, buffer: {_BINARY.Buffer}, at: int, end: int{_parameters(message)}",
        f"tuple[{TYPING.Self}, int]",
        list(_decode_at(message)),
        decorators=["classmethod"],
    )
    yield FunctionDef(f"encode{suffix}", f"self{_parameters(message)}", "bytes", list(_encode(message)))
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
    if any(field.measures for field in message.fields):
        yield "start = at"
    for each in message.given:
        what = f'"{message.name}: {each.name}"'
        yield f"{_BINARY.check_range}({each.name}, {each.first}, {each.last}, at, {what})"
    for number, step in enumerate(steps(message)):
        yield from _decode_step(message, number, step)
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
    else:
        yield f"{names} = {_BINARY.unpack}({layout}, buffer, at, end, {what})"
    for field in step.fields:
        yield from _decode_checks(message, field)
    yield f"at += {step.size}"


def _decode_checks(message: Message, field: Field) -> Iterator[str]:
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
        yield f"{_BINARY.check_known}({field.name}, {own(field.type)}, at, {what})"
    low, high = (field.equals, field.equals) if is_constant(field) else (field.minimum, field.maximum)
    if low is not None or high is not None:
        edge = 8 * field.size - 1
        low, high = -(1 << edge) if low is None else low, (1 << edge) - 1 if high is None else high
        yield from _guard_range(field.name, low, high, what)
        if field.type == "bool":
            yield f"{field.name} = {field.name} == 1"
    if field.measures:
        itself = "" if field.measures == "whole" else f" + {field.size}"
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


def _condition(field: Field, own: str = "") -> str:
    """The Python condition under which the field is there; `own` stands before a field of the message."""
    assert field.when is not None
    low, high = field.when.minimum, field.when.maximum
    value = f"{own}{field.when.field}"
    if low == high:
        return f"{value} == {low}"
    parts = ([] if low is None else [f"{low} <= "]) + [value] + ([] if high is None else [f" <= {high}"])
    return f"{value} >= {low}" if high is None else "".join(parts)


def _decode_variable(message: Message, field: Field) -> Iterator[str]:
    if field.when is None:
        yield from _decode_present(message, field)
        return
    yield f"{field.name}: {attribute_type(field)} = None"
    yield f"if {_condition(field)}:"
    yield from ("    " + line for line in _decode_present(message, field))


def _decode_present(message: Message, field: Field) -> Iterator[str]:
    """Lines that read a field that is there."""
    what = f'"{message.name}.{field.name}"'
    if field.count:
        yield from _decode_list(message, field, what)
        return
    if field.when is not None and field.size and field.type != "bytes":
        yield from _decode_lone_number(field, what)
        return
    if not message.hot and _is_plain(field):
        yield _decode_plain(field, what)
        return
    if field.prefix:
        yield from _decode_prefix(field, what)
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


def _is_plain(field: Field) -> bool:
    """True for bytes, and for a text after its length, of which nothing more is said."""
    if field.nullable or field.optional or field.repeated or field.wider is not None:
        return False
    if field.type == "string":
        return bool(field.prefix) and field.minimum is None and field.maximum is None
    return field.type == "bytes" and not field.prefix


def _decode_plain(field: Field, what: str) -> str:
    if field.type == "string":
        return f"{field.name}, at = {_BINARY.read_string}(buffer, at, {field.prefix}, end, {what})"
    return f"{field.name}, at = {_BINARY.read_bytes}(buffer, at, {_size_expression(field)}, end, {what})"


def _decode_list(message: Message, field: Field, what: str) -> Iterator[str]:
    """Lines that read a count and as many elements."""
    passed = "".join(f", {name}={name}" for name in field.passes)
    if not field.nullable and not is_number_list(field):
        reader = f"{own(field.type)}.decode_at"
        yield f"{field.name}, at = {_BINARY.read_list}({reader}, buffer, at, {field.count}, end, {what}{passed})"
        yield from _decode_distinct(field, what)
        return
    reader = _BINARY.read_nullable if field.nullable else _BINARY.read_count
    yield f"count, at = {reader}(buffer, at, {field.count}, end, {what})"
    indent = ""
    if field.nullable:
        if field.when is None:
            yield f"{field.name}: {attribute_type(field)} = None"
        yield "if count >= 0:"
        yield f"    {_BINARY.need}(at, count, end, {what})"
        indent = "    "
    if is_number_list(field):
        numbers = (
            f"{_BINARY.read_numbers}(buffer, at, count, {field.size}, {field.type != 'uint32'}, end, {what})"
        )
        yield f"{indent}{field.name}, at = {numbers}"
    else:
        alone = sum(other.repeated and other.is_message for other in message.fields) == 1
        element = "element" if alone else f"{field.name}_element"
        yield f"{indent}{field.name} = []"
        yield f"{indent}for _ in range(count):"
        yield f"{indent}    {element}, at = {own(field.type)}.decode_at(buffer, at, end{passed})"
        yield f"{indent}    {field.name}.append({element})"
    yield from (indent + line for line in _decode_distinct(field, what))


def _decode_distinct(field: Field, what: str) -> Iterator[str]:
    if field.distinct:
        yield f"{_BINARY.check_distinct}({_identities(field, field.name)}, at, {what})"


def _identities(field: Field, value: str) -> str:
    """What tells the elements of a list apart: numbers by themselves, messages by their `identity`."""
    return value if is_number_list(field) else f"[element.identity for element in {value}]"


def _decode_lone_number(field: Field, what: str) -> Iterator[str]:
    number = "number" if field.type == "bool" else field.name
    signed = field.type != "uint32"
    yield f"{number}, at = {_BINARY.read_number}(buffer, at, {field.size}, {signed}, end, {what})"
    if field.minimum is not None or field.maximum is not None:
        low, high = bounds(field)
        yield from _guard_range(number, low, high, what)
    if field.type == "bool":
        yield f"{field.name} = {number} == 1"


def _decode_prefix(field: Field, what: str) -> Iterator[str]:
    prefix = str(field.prefix)
    if field.wider is not None:
        wider = field.wider
        prefix = f"{wider.size} if {wider.field} & {wider.mask} == {wider.equals} else {field.prefix}"
    reader = _BINARY.read_nullable if field.nullable else _BINARY.read_prefix
    yield f"size, at = {reader}(buffer, at, {prefix}, end, {what})"
    if field.minimum is not None or field.maximum is not None:
        high = (1 << 31) - 1 if field.maximum is None else field.maximum
        low = field.minimum or 0
        if field.nullable:
            absent = f"size != -1 and not {low} <= size <= {high}"
            yield from _guard(absent, f"{_BINARY.outside}(size, {low}, {high}, at, {what})")
        else:
            yield from _guard_range("size", low, high, what)


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


def _encode(message: Message) -> Iterator[str]:
    found = steps(message)
    for each in message.given:
        what = f'"{message.name}: {each.name}"'
        yield f"{_BINARY.must_be_in}({each.name}, {each.first}, {each.last}, {what})"
    for step in found:
        if isinstance(step, VariablePart):
            yield from _encode_variable(message, step.field)
    for field in wire_fields(message):
        if field.checksum and field.size:
            check = f"{_BINARY.crc32}(self.{field.checksum.over}, {field.checksum.mask})"
            yield f"{field.name} = {check} if self.{field.name} is None else self.{field.name}"
    yield from _encode_measures(message, found)
    parts = [_encode_step(message, number, step) for number, step in enumerate(found)]
    yield f"return {parts[0]}" if len(parts) == 1 else f'return b"".join(({", ".join(parts)}))'


def _encode_variable(message: Message, field: Field) -> Iterator[str]:
    value = f"self.{field.name}"
    if field.when is None:
        yield from _encode_present(message, field, value)
        return
    what = f'"{message.name}.{field.name}"'
    own = "" if message.given_named(field.when.field) else "self."
    yield f"{field.name}_bytes = b''"
    if not field.nullable:
        yield f"{field.name} = {_BINARY.in_this_form}({value}, {_condition(field, own)}, {what})"
        yield f"if {field.name} is not None:"
        yield from ("    " + line for line in _encode_content(message, field, field.name))
        return
    yield f"if {_condition(field, own)}:"
    yield from ("    " + line for line in _encode_present(message, field, value))
    yield "else:"
    yield f"    {_BINARY.excluded}({value}, {what})"


def _encode_present(message: Message, field: Field, value: str) -> Iterator[str]:
    """Lines that make the bytes of a field that is there; `value` is what it holds."""
    if not field.nullable:
        yield from _encode_content(message, field, value)
        return
    yield f"if {value} is None:"
    yield f"    {field.name}_bytes = {_BINARY.write_none}({field.prefix or field.count})"
    yield "else:"
    yield from ("    " + line for line in _encode_content(message, field, value))


def _encode_content(message: Message, field: Field, value: str) -> Iterator[str]:
    what = f'"{message.name}.{field.name}"'
    local = f"{field.name}_bytes"
    if field.distinct:
        yield f"{_BINARY.must_be_distinct}({_identities(field, value)}, {what})"
    if field.type == "map":
        entries = f"{value} or {{}}" if field.optional else value
        prefixes = f"{field.key_prefix}, {field.value_prefix}"
        yield f"{local} = {_BINARY.write_text_map}({entries}, {prefixes}, {what})"
    elif is_number_list(field):
        yield f"{local} = {_BINARY.write_numbers}({value}, {field.size}, {field.type != 'uint32'}, {what})"
    elif field.repeated:
        passed = ", ".join(
            f"{name}={'' if message.given_named(name) else 'self.'}{name}" for name in field.passes
        )
        elements = f"[element.encode({passed}) for element in {value}]"
        if field.count:
            yield f"{local} = {_BINARY.write_list}({elements}, {field.count}, {what})"
            return
        yield f'{local} = b"".join({elements})'
    elif field.type == "string" and not message.hot and _is_plain(field):
        yield f"{local} = {_BINARY.write_string}({value}, {field.prefix}, {what})"
        return
    elif field.type == "string":
        yield f'{local} = ({value} or "").encode()' if field.optional else f"{local} = {value}.encode()"
    elif field.when is not None and field.size and field.type != "bytes":
        signed = field.type != "uint32"
        yield f"{local} = {_BINARY.write_numbers}((int({value}),), {field.size}, {signed}, {what})"
    else:
        yield f"{local} = {value}"
    if field.count:
        yield f"{local} = {_BINARY.write_prefix}(len({value}), {field.count}, {what}) + {local}"
    if field.prefix:
        prefix = str(field.prefix)
        if field.wider is not None:
            wider = field.wider
            prefix = (
                f"{wider.size} if self.{wider.field} & {wider.mask} == {wider.equals} else {field.prefix}"
            )
        yield f"{local} = {_BINARY.write_prefix}(len({local}), {prefix}, {what}) + {local}"


def _encode_measures(message: Message, found: list[Step]) -> Iterator[str]:
    for field in message.fields:
        if field.measures:
            fixed = sum(step.size for step in found if isinstance(step, FixedRun))
            fixed -= field.size if field.measures == "after" else 0
            lengths = [f"len({step.field.name}_bytes)" for step in found if isinstance(step, VariablePart)]
            yield f"{field.name} = {' + '.join([str(fixed), *lengths])}"


def _encode_step(message: Message, number: int, step: Step) -> str:
    if isinstance(step, VariablePart):
        return f"{step.field.name}_bytes"
    derived = derived_fields(message)
    values = ", ".join(_encode_value(message, field, derived.get(field.name, "")) for field in step.fields)
    return f'{_BINARY.pack}({constant_name(message, number)}, "{message.name}", {values})'


def _encode_value(message: Message, field: Field, derived: str) -> str:
    if is_constant(field):
        return str(field.equals)
    if derived.startswith("length:"):
        value = f"len({derived.removeprefix('length:')}_bytes)"
    elif derived or field.checksum:
        value = field.name
    else:
        value = f"self.{field.name}"
    if is_named(field):
        return f'{_JSONS.number_of}({value}, {own(field.enum)}, "{message.name}.{field.name}")'
    if field.size == 3:
        return f'{_BINARY.to_unsigned}({value}, 3, "{message.name}.{field.name}")'
    return f"int({value})" if field.type == "bool" else value


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
            about = f"True when {field.name} is absent or the checksum of {field.checksum.over}."
            expected = f"{_BINARY.crc32}(self.{field.checksum.over}, {field.checksum.mask})"
            value = f"self.{field.name} is None or self.{field.name} == {expected}"
            yield _property(f"{field.name}_holds", "bool", value, about)


def _property(name: str, returns: str, value: str, about: str) -> FunctionDef:
    return FunctionDef(name, "self", returns, [f"return {value}"], about, ["property"])
