"""The names by which Wireshark's filters know the fields of a family, and what the dissector shows of it.

Names follow from the specification: `<protocol>.<field>`, `<protocol>.<list>.<field>` for the elements of
a list, `<protocol>.ext.<message>.<field>` for what a header says in its extension fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from replispec.compiler.model.declared import Dissection, Filter, Protocol
from replispec.compiler.model.layout import is_number_list, wire_fields
from replispec.compiler.model.message import Field, Message, Model, SpecificationError


def _made(name: str, kind: str, title: str, about: str, enum: str = "") -> Filter:
    return Filter(name, kind, title, about, enum)


def protocol_messages(model: Model, protocol: Protocol) -> list[Message]:
    """The messages whose fields are shown under a protocol's name."""
    return [
        message
        for message in model.messages.values()
        if message.name in protocol.further
        or any(re.fullmatch(protocol.streams, name) for name in message.streams)
    ]


def protocol_filters(
    model: Model, dissection: Dissection, protocol: Protocol, guests: Iterable[Model]
) -> list[Filter]:
    """All filters of a protocol, each once. Raises SpecificationError when two fields contend for a name."""
    found: dict[str, Filter] = {}
    places: dict[str, Field] = {}
    for message in protocol_messages(model, protocol):
        for field, made in field_filters(model, message, protocol.name):
            before = found.setdefault(made.name, made)
            places.setdefault(made.name, field)
            if (before.type, before.enum) != (made.type, made.enum):
                _contend(field, made, str(places[made.name].place))
    for made in protocol.derived:
        if made.name in found:
            _contend(places[made.name], made, "the dissector")
        found[made.name] = made
    if dissection.extended.startswith(f"{protocol.name}."):
        for each in (model, *guests):
            found |= {made.name: made for made in extended_filters(each, dissection)}
    return list(found.values())


def _contend(field: Field, made: Filter, other: str) -> None:
    raise SpecificationError(
        field.place, f"the filter {made.name} has another meaning at {other}", "give the field another name"
    )


def extended_filters(model: Model, dissection: Dissection) -> Iterator[Filter]:
    """The filters of all typed header fields."""
    for message in header_messages(model):
        for field in message.fields:
            made = _filter(field, extended_name(dissection, message, field))
            about = f"{field.key} of {message.name}"
            yield replace(made, about=f"{about}: {field.about}" if field.about else about)


def extended_name(dissection: Dissection, message: Message, field: Field) -> str:
    """The filter of one typed header field."""
    return f"{dissection.extended}.{_snake(message.name)}.{field.name}"


def header_messages(model: Model) -> list[Message]:
    """The messages whose fields travel as texts in the header of a command."""
    return [message for message in model.messages.values() if message.layout == "HEADER_FIELDS"]


def field_filters(model: Model, message: Message, prefix: str) -> Iterator[tuple[Field, Filter]]:
    """The filters of a binary message below `prefix`, with those of its lists and maps."""
    for field in message.fields:
        made = _filter(field, f"{prefix}.{field.name}")
        yield field, made
        if field.type == "map":
            yield field, _made(f"{made.name}.key", "string", "Key", f"a key of {field.name}")
            yield field, _made(f"{made.name}.value", "string", "Value", f"a value of {field.name}")
        elif field.is_message:
            element = model.messages[field.type]
            yield field, _made(f"{made.name}.element", "none", element.name, element.about)
            yield from field_filters(model, element, made.name)


def _filter(field: Field, name: str) -> Filter:
    kind, enum = filter_type(field)
    return Filter(name, kind, title_of(name), field.about, enum)


def filter_type(field: Field) -> tuple[str, str]:
    """The type of a field's filter, and the enum that names its values."""
    kind = "none" if field.type == "map" or field.is_message else "int32" if field.is_enum else field.type
    return kind, field.enum if kind in ("int32", "uint32") else ""


def title_of(name: str) -> str:
    """The last part of a filter's name, in words."""
    return name.rpartition(".")[2].replace("_", " ").capitalize()


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def check_needs(model: Model, dissection: Dissection) -> None:
    """Raises SpecificationError when something is not there that the dissector calls by name."""
    carried = {name for message in model.messages.values() for name in message.streams}
    missing = [f"stream {name}" for name in dissection.streams if name not in carried]
    for owner, names in dissection.fields.items():
        message = model.messages.get(owner)
        missing += [f"{owner}.{name}" for name in names if message is None or not message.field_named(name)]
    for owner, names in dissection.values.items():
        known = {value.name for value in model.enums[owner].values} if owner in model.enums else set()
        missing += [f"{owner}.{name}" for name in names if name not in known]
    if missing:
        raise SpecificationError(
            f"proto/{model.family}",
            f"the dissector needs {', '.join(missing)}",
            "keep the name, or change it in the dissector's parts (lua/ of the compiler) too",
        )


def check_guests(model: Model, guests: Iterable[Model]) -> None:
    """Raises SpecificationError when a guest names something as the family does: filters would mean two."""
    messages, enums = {*model.messages}, {*model.enums}
    for guest in guests:
        named = [*(each.name for each in header_messages(guest) if each.name in messages)]
        named += [each.name for each in guest.enums.values() if each.name in enums and not each.codes]
        if named:
            raise SpecificationError(
                f"proto/{guest.family}",
                f"{', '.join(named)}: {model.family} has the same names in the framing of both",
                "give them names of their own: Wireshark shows both families together",
            )
        messages |= {*guest.messages}
        enums |= {*guest.enums}


def shown_messages(model: Model, dissection: Dissection) -> Iterator[tuple[Protocol, Message]]:
    """Every message of a stream with the protocol that shows it; checks that the dissector can read it."""
    for protocol in dissection.protocols:
        for message in protocol_messages(model, protocol):
            for field in wire_fields(message):
                _check_readable(message, field)
            yield protocol, message


def _check_readable(message: Message, field: Field) -> None:
    if is_number_list(field) or (field.when and message.given_named(field.when.field)):
        raise SpecificationError(
            field.place,
            f"{message.name}.{field.name}: the dissector reads no lists of numbers, and nothing that depends"
            " on a number that is not in the message",
            "teach it (lua/fields.lua of the compiler), or keep the message out of the family's streams",
        )
