"""What the compiler refuses of frames that fit together, first frames, runs and messages within messages."""

from __future__ import annotations

from replispec.compiler.model.layout import (
    TYPE_BYTES,
    is_constant,
    is_inner,
    is_last_number,
    is_number_list,
    wire_fields,
)
from replispec.compiler.model.message import Field, Message, Model, SpecificationError


def check_exchanges(model: Model, message: Message) -> None:
    """Raises SpecificationError for the first option that cannot be meant."""
    _check_opening(message)
    _check_answers(model, message)
    _check_number(model, message)
    for field in message.fields:
        _check_among(message, field)
        _check_run(model, message, field)
        if message.layout != "BINARY":
            continue
        if is_last_number(field) and field is not wire_fields(message)[-1]:
            raise SpecificationError(
                field.place, f"{message.name}.{field.name} may be absent, and others follow", "put it last"
            )
        if is_inner(field):
            _check_depth(model, message, field)


def _check_opening(message: Message) -> None:
    if message.opens and not message.streams:
        raise SpecificationError(
            message.place, f"{message.name} opens no stream", 'name it, as stream: "REQUESTS"'
        )


def _check_answers(model: Model, message: Message) -> None:
    said = message.answers
    if said is None:
        return
    frame = model.messages.get(said.frame)
    if frame is None:
        raise SpecificationError(
            message.place, f"{message.name} answers {said.frame!r}, which does not exist", "name a message"
        )
    wanted = [
        *((frame, name, "number") for name in (said.number, said.code, said.version) if name),
        *((message, name, "number") for name in (said.number, said.failed) if name),
        *((holder, "body", "bytes") for holder in (frame, message)),
    ]
    if not said.code:
        raise SpecificationError(
            message.place,
            f"{message.name}: nothing of {frame.name} says what is asked for",
            "name its field, as code: ..",
        )
    for holder, name, what in wanted:
        field = holder.field_named(name)
        is_right = field is not None and (field.type == "bytes" if what == "bytes" else _is_integer(field))
        if not is_right:
            raise SpecificationError(
                message.place,
                f"{message.name}: {holder.name} has no {what} {name!r}",
                "name a field that both frames have" if name == said.number else "name a field of it",
            )


def _check_number(model: Model, message: Message) -> None:
    if message.number is None:
        return
    if not any(each.answers and each.answers.number for each in model.messages.values()):
        raise SpecificationError(
            message.place, f"{message.name} has a number, but no frame pairs by one", "drop it"
        )
    if message.kind == "RESPONSE":
        return
    for other in model.messages.values():
        if other is not message and other.kind != "RESPONSE" and other.number == message.number:
            raise SpecificationError(
                message.place,
                f"{message.name} has the number {message.number}, as {other.name} ({other.place}) has",
                "give one of them another number",
            )


def _check_among(message: Message, field: Field) -> None:
    if field.among and not (_is_integer(field) and field.size and message.layout == "BINARY"):
        raise SpecificationError(
            field.place, f"{message.name}.{field.name}: only a number is one of some", "drop among"
        )


def _check_run(model: Model, message: Message, field: Field) -> None:
    if not field.until:
        return
    where = f"{message.name}.{field.name}"
    if message.layout != "BINARY" or not (field.repeated and field.is_message):
        raise SpecificationError(field.place, f"{where} is no run of messages", "drop until")
    mark = model.messages.get(field.until)
    if mark is None or not mark.fields or not all(map(is_constant, mark.fields)):
        raise SpecificationError(
            field.place, f"{where} ends with {field.until!r}, which is no message of constants", "name one"
        )
    if field.nullable:
        raise SpecificationError(field.place, f"{where}: a run has no count that is -1", "drop nullable")


def _check_depth(model: Model, message: Message, field: Field) -> None:
    """A message must not lie within itself: its bytes would never end."""
    seen, waiting = {message.name}, [field.type]
    while waiting:
        inner = model.messages.get(waiting.pop())
        if inner is None:
            continue
        if inner.name == message.name or inner.layout != "BINARY":
            raise SpecificationError(
                field.place,
                f"{message.name}.{field.name}: {inner.name} lies within itself"
                if inner.name == message.name
                else f"{message.name}.{field.name}: {inner.name} is not BINARY",
                "make it a list, or take another message",
            )
        if inner.name not in seen:
            seen.add(inner.name)
            waiting += [each.type for each in inner.fields if is_inner(each)]


def _is_integer(field: Field | None) -> bool:
    if field is None or is_number_list(field):
        return False
    return field.is_enum or (field.type in TYPE_BYTES and field.type != "bool")
