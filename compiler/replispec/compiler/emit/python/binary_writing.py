"""The writing half of Python codecs of BINARY messages."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python import zigzag
from replispec.compiler.emit.python.binary_fields import (
    checksum_of,
    condition,
    constant_name,
    identities,
    is_lone_number,
    is_named,
    is_plain,
)
from replispec.compiler.emit.python.tree import (
    PRIMITIVES,
    Names,
    own,
)
from replispec.compiler.model.layout import (
    FixedRun,
    Step,
    VariablePart,
    derived_fields,
    end_in_fixed,
    is_constant,
    is_inner,
    is_last_number,
    is_number_list,
    is_text_list,
    steps,
    summed_after,
    wire_fields,
)
from replispec.compiler.model.message import AFTER, Field, Message

_BINARY = Names(f"{PRIMITIVES}.binary")
_RUNS = Names(f"{PRIMITIVES}.runs")
_JSONS = Names(f"{PRIMITIVES}.jsons")
_STRUCT = Names("struct")


def encode_lines(message: Message) -> Iterator[str]:
    found = steps(message)
    for each in message.given:
        what = f'"{message.name}: {each.name}"'
        yield f"{_BINARY.must_be_in}({each.name}, {each.first}, {each.last}, {what})"
    for step in found:
        if isinstance(step, VariablePart) and step.field != zigzag.measured(message):
            yield from _encode_variable(message, step.field)
    for field in wire_fields(message):
        if field.among:
            what = f'"{message.name}.{field.name}"'
            yield f"{_BINARY.must_be_among}(self.{field.name}, {field.among!r}, {what})"
        if field.checksum and field.size and field.checksum.over != AFTER:
            check = checksum_of(message, field, f"self.{field.checksum.over}", "")
            yield f"{field.name} = {check} if self.{field.name} is None else self.{field.name}"
    yield from _encode_measures(message, found)
    parts = [_encode_step(message, number, step) for number, step in enumerate(found)]
    joined = f'b"".join(({", ".join(parts)}))' if message.hot and len(parts) > 1 else " + ".join(parts)
    summed = summed_after(message)
    if summed is not None:
        yield f"{summed.name} = self.{summed.name} or 0"
        yield f"if self.{summed.name} is None:"
        yield f"    all_bytes = {joined}"
        yield f"    {summed.name} = {checksum_of(message, summed, '', 'memoryview(all_bytes)')}"
    yield "return " + (joined or 'b""')


def _encode_variable(message: Message, field: Field) -> Iterator[str]:
    value = f"self.{field.name}"
    if is_last_number(field):
        number = _write_number(field, value, f'"{message.name}.{field.name}"')
        yield f"{field.name}_bytes = b'' if {value} is None else {number}"
        return
    if field.when is None:
        yield from _encode_present(message, field, value)
        return
    what = f'"{message.name}.{field.name}"'
    own = "" if message.given_named(field.when.field) else "self."
    yield f"{field.name}_bytes = b''"
    if not field.nullable:
        yield f"{field.name} = {_BINARY.in_this_form}({value}, {condition(field, own)}, {what})"
        yield f"if {field.name} is not None:"
        yield from ("    " + line for line in _encode_content(message, field, field.name))
        return
    yield f"if {condition(field, own)}:"
    yield from ("    " + line for line in _encode_present(message, field, value))
    yield "else:"
    yield f"    {_BINARY.excluded}({value}, {what})"


def _encode_present(message: Message, field: Field, value: str) -> Iterator[str]:
    """Lines that make the bytes of a field that is there; `value` is what it holds."""
    if not field.nullable:
        yield from _encode_content(message, field, value)
        return
    none = f"{_BINARY.write_none}({field.count or field.prefix})"
    if field.zigzag:
        none = zigzag.write("-1", field.prefix or field.count, f'"{message.name}.{field.name}"')
    lines = list(_encode_content(message, field, value))
    if len(lines) == 1:
        yield f"{field.name}_bytes = {none} if {value} is None else {lines[0].partition(' = ')[2]}"
        return
    yield f"if {value} is None:"
    yield f"    {field.name}_bytes = {none}"
    yield "else:"
    yield from ("    " + line for line in lines)


def _encode_content(message: Message, field: Field, value: str) -> Iterator[str]:
    what = f'"{message.name}.{field.name}"'
    local = f"{field.name}_bytes"
    if field.distinct and (is_number_list(field) or is_text_list(field) or not field.count):
        yield f"{_BINARY.must_be_distinct}({identities(field, value)}, {what})"
    whole = _whole_content(message, field, value)
    if whole:
        yield f"{local} = {whole}"
        return
    if field.type == "map":
        entries = f"{value} or {{}}" if field.optional else value
        prefixes = f"{field.key_prefix}, {field.value_prefix}"
        yield f"{local} = {_BINARY.write_text_map}({entries}, {prefixes}, {what})"
    elif field.repeated:
        passed = ", ".join(f"{name}={_given(message, name)}" for name in field.passes)
        yield f'{local} = b"".join([element.encode({passed}) for element in {value}])'
    elif field.type == "string" and not message.hot and is_plain(field):
        yield f"{local} = {_BINARY.write_string}({value}, {field.prefix}, {what})"
        return
    elif field.type == "string":
        yield f'{local} = ({value} or "").encode()' if field.optional else f"{local} = {value}.encode()"
    elif zigzag.is_zigzag_number(field):
        yield f"{local} = {zigzag.write(value, field.size, what)}"
    elif field.when is not None and field.size and field.type != "bytes":
        yield f"{local} = {_write_number(field, value, what)}"
    else:
        yield f"{local} = {value}"
    if field.zigzag and (field.prefix or field.count):
        length = f"len({local})" if field.prefix else f"len({value})"
        yield f"{local} = {zigzag.write(length, field.prefix or field.count, what)} + {local}"
    elif field.prefix:
        prefix = str(field.prefix)
        if field.wider is not None:
            wider = field.wider
            prefix = (
                f"{wider.size} if self.{wider.field} & {wider.mask} == {wider.equals} else {field.prefix}"
            )
        yield f"{local} = {_BINARY.write_prefix}(len({local}), {prefix}, {what}) + {local}"


def _whole_content(message: Message, field: Field, value: str) -> str:
    """The call that makes all bytes of a list, a run or a message within the message; none for others."""
    what = f'"{message.name}.{field.name}"'
    passed = [f"{name}={_given(message, name)}" for name in field.passes]
    if is_inner(field):
        return f"{value}.encode({', '.join(passed)})"
    if not field.repeated:
        return ""
    if field.until:
        return f"{_RUNS.write_run}({', '.join([value, f'{own(field.until)}().encode()', what, *passed])})"
    if is_number_list(field):
        sizes = f"{field.count}, {field.size}, {field.type != 'uint32'}"
        return f"{_BINARY.write_number_list}({value}, {sizes}, {what})"
    if is_text_list(field):
        return f"{_BINARY.write_string_list}({value}, {field.count}, {field.prefix}, {what})"
    if field.count and not field.zigzag:
        writer = _BINARY.write_distinct if field.distinct else _BINARY.write_list
        return f"{writer}({', '.join([value, str(field.count), what, *passed])})"
    return ""


def _write_number(field: Field, value: str, what: str) -> str:
    number = f"int({value})" if field.type == "bool" else value
    return f"{_BINARY.write_numbers}(({number},), {field.size}, {field.type != 'uint32'}, {what})"


def _given(message: Message, name: str) -> str:
    return name if message.given_named(name) else f"self.{name}"


def _encode_measures(message: Message, found: list[Step]) -> Iterator[str]:
    for field in message.fields:
        if field.measures:
            fixed = sum(step.size for step in found if isinstance(step, FixedRun))
            fixed -= end_in_fixed(message, field) if field.measures == AFTER and not field.zigzag else 0
            parts = [step.field for step in found if isinstance(step, VariablePart) and step.field != field]
            size = " + ".join([str(fixed), *(f"len({each.name}_bytes)" for each in parts)])
            if field.zigzag:
                what = f'"{message.name}.{field.name}"'
                yield f"{field.name}_bytes = {zigzag.write(size, field.size, what)}"
            else:
                yield f"{field.name} = {size}"


def _encode_step(message: Message, number: int, step: Step) -> str:
    if isinstance(step, VariablePart):
        return f"{step.field.name}_bytes"
    derived = derived_fields(message)
    if is_lone_number(message, step):
        field = step.fields[0]
        value = _encode_value(message, field, derived.get(field.name, ""))
        sizes = f"{field.size}, {field.type != 'uint32'}"
        return f'{_BINARY.write_numbers}(({value},), {sizes}, "{message.name}.{field.name}")'
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
