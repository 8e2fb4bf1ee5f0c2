"""The Wireshark dissector of a family: tables from the model, read by hand-written parts in Lua."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from replispec.compiler.emit.lua.filters import (
    check_guests,
    check_needs,
    filter_type,
    header_messages,
    protocol_filters,
    shown_messages,
    title_of,
)
from replispec.compiler.emit.lua.text import Value, lua_value
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.model.declared import Dissection, Filter
from replispec.compiler.model.forms import Form, Test, form_of, stream_members, stream_names
from replispec.compiler.model.layout import is_inner, is_last_number
from replispec.compiler.model.message import Enum, Field, Model, SpecificationError, When, Wider

_PARTS = Path(__file__).parent / "parts"


Guests = Sequence[tuple[Model, Mapping[str, bytes]]]
"""Families that speak a framing of another one, each with the fingerprints of its messages."""


def dissector_texts(model: Model, sources: Mapping[str, bytes], guests: Guests) -> dict[str, str]:
    """The dissector and the list of its filters, path below generated/ -> text; none when none is
    declared. The commands of guests are told in the streams of the family, by their codes.

    Raises SpecificationError when a message cannot be shown.
    """
    dissection = model.declared.dissection
    if dissection is None:
        return {}
    check_needs(model, dissection)
    others = [guest for guest, _ in guests]
    check_guests(model, others)
    every = {**sources, **{name: data for _, files in guests for name, data in files.items()}}
    return {
        f"wireshark/{model.family}.lua": _chunk(model, dissection, others, every),
        f"docs/{model.family}/wireshark.md": _markdown(model, dissection, others),
    }


def _chunk(
    model: Model, dissection: Dissection, guests: Sequence[Model], sources: Mapping[str, bytes]
) -> str:
    lines = [line.replace("#", "--", 1) for line in certificate(sources)]
    lines += [
        f"-- Wireshark dissectors of {model.family}: the specification, and functions that read it.",
        "",
        f"local SPECIFICATION = {lua_value(_tables(model, dissection, guests))}",
        "",
    ]
    parts = [_part(part, model) for part in dissection.parts]
    return "\n".join([*lines, *parts])


def _part(name: str, model: Model) -> str:
    """A hand-written part, of those that the compiler has."""
    path = _PARTS / name
    if not path.resolve().is_relative_to(_PARTS.resolve()) or not path.is_file():
        known = sorted(each.relative_to(_PARTS).as_posix() for each in _PARTS.rglob("*.lua"))
        raise SpecificationError(
            model.declared.file, f"the dissector has no part {name!r}", f"parts: {', '.join(known)}"
        )
    return path.read_text("utf-8")


def _tables(model: Model, dissection: Dissection, guests: Sequence[Model]) -> dict[str, Value]:
    shown = list(shown_messages(model, dissection))
    protocols = {
        protocol.name: {
            "title": protocol.title,
            "messages": [message.name for by, message in shown if by == protocol],
            "filters": [_filter(made, f"{protocol.name}.") for made in protocol.derived],
        }
        for protocol in dissection.protocols
    }
    messages = {
        message.name: [_field(model, field, keyed=bool(message.also)) for field in message.fields]
        for _, message in shown
    }
    return {
        "extended": dissection.extended,
        "protocols": protocols,
        "enums": _enums(model, guests),
        "streams": {name: _stream(model, name) for name in stream_names(model)},
        "messages": messages,
        "headers": {name: fields for each in (model, *guests) for name, fields in _headers(each).items()},
        **_commands((model, *guests)),
        **_exchanges(model),
    }


def _filter(made: Filter, prefix: str) -> Value:
    """A filter below its protocol; its title where the name does not say it."""
    return {
        "name": made.name.removeprefix(prefix),
        "type": made.type,
        "title": made.title if made.title != title_of(made.name) else None,
        "enum": made.enum or None,
        "about": made.about or None,
    }


def _enums(model: Model, guests: Iterable[Model]) -> dict[str, Value]:
    """The names of numbers; those of a guest's codes are among the codes of the family."""
    found = {enum.name: _names(enum) for enum in model.enums.values()}
    codes = next((enum.name for enum in model.enums.values() if enum.codes), "")
    for guest in guests:
        for enum in guest.enums.values():
            name = codes if enum.codes else enum.name
            found[name] = {**found.get(name, {}), **_names(enum)}
    return {**found}


def _names(enum: Enum) -> dict[int, str]:
    """Number -> name; a number that changed its meaning has all its names, each with its releases."""
    values = sorted(enum.values, key=lambda value: value.number)
    found: dict[int, list[str]] = {}
    for value in values:
        alone = sum(other.number == value.number for other in values) == 1
        text = value.wire_name if alone else f"{value.wire_name} ({value.versions})"
        found.setdefault(value.number, []).append(text)
    return {number: " or ".join(names) for number, names in found.items()}


def _stream(model: Model, name: str) -> Value:
    opening = [_form(form_of(message)) for message in stream_members(model, name, opens=True)]
    forms = [_form(form_of(message)) for message in stream_members(model, name)]
    return {"forms": forms, "first": opening or None}


def _form(form: Form) -> Value:
    length: dict[str, Value] = {}
    if form.length is not None:
        length = {
            "length_at": form.length.at,
            "length_size": form.length.size,
            "minimum": form.length.minimum,
            "maximum": form.length.maximum,
        }
    tests = [_test(test) for test in form.tests]
    return {"message": form.message, "fixed": form.fixed, **length, "tests": tests}


def _test(test: Test) -> Value:
    return {"at": test.at, "size": test.size, **_limits(test.minimum, test.maximum, test.size)}


def _limits(minimum: int | None, maximum: int | None, size: int) -> dict[str, Value]:
    """Bounds as the dissector compares them: of numbers of 8 bytes by their halves."""

    def bound(value: int | None) -> Value:
        if value is None or size < 8:
            return value
        return [value >> 32, value & 0xFFFFFFFF]

    return {"minimum": bound(minimum), "maximum": bound(maximum)}


def _field(model: Model, field: Field, *, keyed: bool) -> Value:
    """One field as the dissector reads it; `keyed`: it has a key of JSON, too."""
    kind = "int32" if field.is_enum else field.type
    low, high = (field.equals, field.equals) if field.equals is not None else (field.minimum, field.maximum)
    wider = field.wider
    inner = model.messages[field.type].fields if field.is_message else ()
    return {
        "name": field.name,
        "type": kind,
        "size": field.size or None,
        "prefix": field.prefix or None,
        "key_prefix": field.key_prefix or None,
        "value_prefix": field.value_prefix or None,
        "length": field.length or None,
        "measures": field.measures or None,
        **_limits(low, high, field.size),
        "wider": None if wider is None else _wider(wider),
        "key": field.key if keyed else None,
        "enum": field.enum or None,
        "about": field.about or None,
        "element": model.messages[field.type].about or None if field.is_message else None,
        "name_in_json": field.name_in_json or None,
        "json_only": field.json_only or None,
        "fields": [_field(model, element, keyed=False) for element in inner] or None,
        **_further(model, field),
    }


def _further(model: Model, field: Field) -> dict[str, Value]:
    """What only some fields have: counts, conditions, values that are listed, marks that end a run."""
    mark = model.messages[field.until].fields if field.until else ()
    when = field.when
    return {
        "count": field.count or None,
        "nullable": field.nullable or None,
        "among": dict.fromkeys(field.among, True) or None,
        "when": None if when is None else _when(when),
        "mark": [_field(model, each, keyed=False) for each in mark] or None,
        "inner": is_inner(field) or None,
        "last": is_last_number(field) or None,
    }


def _when(when: When) -> Value:
    bounds: dict[str, Value] = {"minimum": when.minimum, "maximum": when.maximum}
    return {"field": when.field, **bounds}


def _exchanges(model: Model) -> dict[str, Value]:
    """How the answers of each frame are read; empty for a family whose frames are no pairs."""
    found: dict[str, Value] = {}
    for frame in model.messages.values():
        if frame.answers is None:
            continue
        said = frame.answers
        forms: dict[int, dict[str, Value]] = {}
        numbers: dict[int, Value] = {}
        unasked: dict[int, Value] = {}
        for message in model.messages.values():
            for code in message.codes:
                side = "answer" if message.kind == "RESPONSE" else "request"
                forms.setdefault(code, {})[side] = message.name
            if message.number is not None and not message.codes:
                unasked[message.number] = message.name
            elif message.number is not None:
                numbers[message.number] = message.codes[0]
        names: dict[str, Value] = {"number": said.number, "code": said.code, "failed": said.failed}
        found[frame.name] = {**names, "forms": forms, "numbers": numbers, "unasked": unasked}
    return {"exchanges": found} if found else {}


def _wider(wider: Wider) -> Value:
    numbers: dict[str, Value] = {"mask": wider.mask, "equals": wider.equals, "size": wider.size}
    return {"field": wider.field, **numbers}


def _headers(model: Model) -> dict[str, Value]:
    """The fields of typed headers, those of disjoint releases included; empty headers are left out."""
    found: dict[str, Value] = {}
    for message in header_messages(model):
        fields: list[Value] = []
        for field in message.fields:
            kind, enum = filter_type(field)
            entry = {"key": field.key, "name": field.name, "type": kind}
            fields.append({**entry, "enum": enum or None, "about": field.about or None})
        if fields:
            found[message.name] = fields
    return found


def _commands(models: Sequence[Model]) -> dict[str, Value]:
    commands = [(model, message) for model in models for message in model.messages.values() if message.codes]
    tables: dict[str, Value] = {}
    for headers, bodies, kinds in (
        ("requests", "request_bodies", ("REQUEST", "ONEWAY")),
        ("answers", "answer_bodies", ("RESPONSE",)),
    ):
        chosen = [(model, message) for model, message in commands if message.kind in kinds]
        tables[headers] = {code: message.name for _, message in chosen for code in message.codes}
        tables[bodies] = {
            code: {"message": message.bodies[0], "layout": model.messages[message.bodies[0]].layout}
            for model, message in chosen
            if message.bodies
            for code in message.codes
        }
    return tables


_TYPES = {"request": "packet number", "response": "packet number", "none": "group"}


def _markdown(model: Model, dissection: Dissection, guests: Sequence[Model]) -> str:
    lines = ["<!-- made by `make generate`; change the specification, not this page -->", ""]
    lines += [f"# {model.family}: filters of the Wireshark dissector", ""]
    for protocol in dissection.protocols:
        lines += [f"## {protocol.name}: {protocol.title}", ""]
        lines += ["| filter | type | meaning |", "| --- | --- | --- |"]
        for made in protocol_filters(model, dissection, protocol, guests):
            about = made.about.replace("|", "\\|").replace("<", "&lt;")
            values = f"values of [{made.enum}](numbers.md#{made.enum.lower()})" if made.enum else ""
            kind = _TYPES.get(made.type, made.type)
            lines.append(f"| `{made.name}` | {kind} | {'; '.join(filter(None, (about, values)))} |")
        lines += [f"| `{protocol.name}.malformed` | expert | the bytes break the specification |", ""]
    return "\n".join(lines).rstrip() + "\n"
