"""What the compiler refuses in the messages of a family, with place, fault and advice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

from replispec.compiler.check.exchanges import check_exchanges
from replispec.compiler.check.rights import check_rights
from replispec.compiler.check.wire_options import check_wire_options
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.layout import check_layout
from replispec.compiler.model.message import Field, Given, Message, Model, SpecificationError, VersionRange

# What readers of binary messages call their own: a field of the same name would take its place.
READERS_NAMES = frozenset(("cls", "buffer", "at", "end"))


def check_model(model: Model) -> None:
    """Raises SpecificationError for a message that breaks a rule of the language."""
    for message in model.messages.values():
        for check in (
            _check_layout,
            _check_names,
            _check_types,
            _check_given,
            _check_alternatives,
            check_exchanges,
            check_wire_options,
        ):
            with attempt():
                check(model, message)
    with attempt():
        _check_codes(model)
    check_rights(model)


def _check_layout(_model: Model, message: Message) -> None:
    if not message.layout:
        raise SpecificationError(
            message.place,
            f"{message.name} has no layout",
            "say how it lies on the wire: option (on_wire) = { layout: ... }",
        )
    if message.layout == "BINARY":
        check_layout(message)
    if message.hot and message.layout != "BINARY":
        raise SpecificationError(
            message.place,
            f"{message.name} is hot, but not binary",
            "drop it: there is one way",
        )
    if message.head and not message.fixed:
        raise SpecificationError(
            message.place, f"{message.name} has a head of no size", "say how many bytes it has, as fixed: 8"
        )


def _check_names(_model: Model, message: Message) -> None:
    for field in message.fields if message.layout == "BINARY" else ():
        if field.name in READERS_NAMES:
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name}: readers of binary messages have something else of this name",
                "take another name",
            )


def _check_types(model: Model, message: Message) -> None:
    known = model.messages.keys() | model.enums.keys()
    for name in message.bodies:
        if name not in model.messages:
            raise SpecificationError(
                message.place, f"{message.name}: body {name!r} does not exist", "name a message"
            )
    for field in message.fields:
        if field.is_message and field.type not in known:
            raise SpecificationError(
                field.place, f"{field.type!r} does not exist", "name a message of the family"
            )
        if field.enum and field.enum not in model.enums:
            raise SpecificationError(
                field.place, f"enum {field.enum!r} does not exist", "name an enum of the family"
            )
        if message.layout == "HEADER_FIELDS" and (field.repeated or field.is_message or field.type == "map"):
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name} is no single value",
                "header fields are texts: put it into the body",
            )


def _check_given(model: Model, message: Message) -> None:
    """Refuse given numbers that nobody gives, or outside of what the element knows."""
    binary_only = any(field.when or field.nullable or field.distinct for field in message.fields)
    if message.layout != "BINARY" and (message.given or binary_only):
        raise SpecificationError(
            message.place, f"{message.name} is not BINARY", "drop given, when, nullable and distinct"
        )
    if message.given and message.streams:
        raise SpecificationError(
            message.place,
            f"{message.name} is a frame of its own, so nobody gives it {message.given[0].name}",
            "put it into the frame as a field",
        )
    given = [each.name for each in message.given]
    exchanges = [each.answers for each in model.messages.values() if each.answers]
    is_exchanged = not given and any(not each.version for each in exchanges)
    if message.codes and message.layout == "BINARY" and given != ["version"] and not is_exchanged:
        raise SpecificationError(
            message.place,
            f"{message.name} has a code, but no version goes with it",
            'give it one, as given: {name: "version" first: 0 last: 1}, or say with answers how it is read',
        )
    for field in message.fields:
        element = model.messages.get(field.type)
        if not field.is_message or element is None:
            continue
        for wanted in element.given:
            _check_passed_on(message, field, element, wanted)
        if field.distinct and not any(part.identifies for part in element.fields):
            raise SpecificationError(
                field.place,
                f"nothing identifies a {element.name}",
                "mark its keys with identifies: true",
            )


def _check_passed_on(message: Message, field: Field, element: Message, wanted: Given) -> None:
    """The number that an element wants is one of the message's own, within the element's range."""
    own, held = message.given_named(wanted.name), message.field_named(wanted.name)
    if own is None and held is None:
        raise SpecificationError(
            field.place,
            f"{message.name}.{field.name}: nobody gives {element.name} its {wanted.name}",
            f"give it to {message.name}, or make it an earlier field",
        )
    if own is not None and not wanted.first <= own.first <= own.last <= wanted.last:
        raise SpecificationError(
            field.place,
            f"{message.name} has {wanted.name} {own.first}..{own.last}, but {element.name} only"
            f" {wanted.first}..{wanted.last}",
            "widen the element's range or narrow the message's",
        )


def _check_codes(model: Model) -> None:
    commands = [message for message in model.messages.values() if message.codes]
    enums = [enum for enum in model.enums.values() if enum.codes]
    if len(enums) > 1:
        raise SpecificationError(
            enums[1].place, f"{enums[0].name} and {enums[1].name} both hold the codes", "mark one of them"
        )
    known = {value.number for enum in enums for value in enum.values}
    for message in commands:
        for code in message.codes:
            if code not in known:
                where = f"enum {enums[0].name}" if enums else "an enum with option (numbers) = {codes: true}"
                raise SpecificationError(
                    message.place,
                    f"{message.name}: code {code} is not in {where}",
                    "add it there with its name",
                )
        if not message.kind:
            raise SpecificationError(
                message.place, f"{message.name} has a code but no kind", "say REQUEST, RESPONSE or ONEWAY"
            )
    for one, other in combinations(commands, 2):
        shared = set(one.codes) & set(other.codes)
        same_side = (one.kind == "RESPONSE") == (other.kind == "RESPONSE")
        same_number = not one.given or not other.given or one.given[0].overlaps(other.given[0])
        if shared and same_side and same_number and overlap(one.versions, other.versions):
            raise SpecificationError(
                other.place,
                f"{other.name} takes code {min(shared)}, which {one.name} ({one.place}) has in the same"
                " releases",
                "give one of them another code or releases that do not overlap",
            )


def overlap(one: VersionRange | None, other: VersionRange | None) -> bool:
    """True when some release lies in both ranges; None is all releases."""
    return one is None or other is None or one.overlaps(other)


def _check_alternatives(_model: Model, message: Message) -> None:
    """Fields that share a key are alternatives: their releases may not overlap, nor leave a hole."""
    if message.layout not in ("HEADER_FIELDS", "JSON"):
        return
    groups: dict[str, list[Field]] = {}
    for field in message.fields:
        groups.setdefault(field.key, []).append(field)
    for key, fields in groups.items():
        if len(fields) > 1:
            _check_group(message, key, fields)


def _check_group(message: Message, key: str, fields: Sequence[Field]) -> None:
    for one, other in combinations(fields, 2):
        if overlap(one.versions, other.versions):
            raise SpecificationError(
                other.place,
                f"{message.name}: {one.name} and {other.name} both are {key!r} in the same releases",
                "give them releases that do not overlap",
            )
    hole = _hole(field.versions for field in fields)
    if hole:
        raise SpecificationError(
            fields[0].place,
            f"{message.name}: no field is {key!r} in {hole}",
            "let the ranges follow one another, the last one open",
        )


def _hole(ranges: Iterable[VersionRange | None]) -> str:
    """A description of releases that no range of the group covers; empty when there are none.

    Ranges follow one another when the next one starts with the last number of its predecessor's
    end increased by one, or with a later component of it.
    """
    ordered = sorted((r for r in ranges if r is not None), key=lambda r: r.first or ())
    for before, after in pairwise(ordered):
        if before.last is None or after.first is None:
            continue
        follows = (*before.last[:-1], before.last[-1] + 1)
        if after.first > follows:
            return f"the releases between {before} and {after}"
    last = ordered[-1]
    return "" if last.last is None else f"the releases after {last}"
