"""What each request of a family needs: no request is left out, and what it needs is there."""

from __future__ import annotations

from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import Field, Message, Model, NeededRight, SpecificationError


def check_rights(model: Model) -> None:
    """Raises SpecificationError for a request that does not say what it needs, or needs what is not there."""
    for message in model.messages.values():
        with attempt():
            _check(model, message)


def field_of(model: Model, message: Message, path: str) -> tuple[Field, ...]:
    """The fields of a message that lead to what a right is of: one of its own, or those of its body.

    Raises SpecificationError.
    """
    own = message.field_named(path)
    if own is not None:
        return (own,)
    found: list[Field] = []
    holder = model.messages.get(message.bodies[0]) if message.bodies else None
    for name in path.split("."):
        field = holder.field_named(name) if holder is not None else None
        if field is None:
            raise SpecificationError(
                message.place,
                f"{message.name} needs a right of {path!r}, which is no field of it",
                "name a field of the message, or of its body as a.b",
            )
        found.append(field)
        holder = model.messages.get(field.type) if field.is_message else None
    if found[-1].type != "string":
        raise SpecificationError(
            message.place, f"{message.name}.{path} is no name of anything", "name a field that is a string"
        )
    return tuple(found)


def is_in_body(message: Message, need: NeededRight) -> bool:
    """Whether what the right is of stands in the body."""
    return bool(need.of) and message.field_named(need.of) is None


def _check(model: Model, message: Message) -> None:
    rights = model.declared.rights
    if not message.is_request:
        if message.needs or message.audited:
            raise SpecificationError(
                message.place, f"{message.name} needs a right, but asks for nothing", "say it of the request"
            )
        return
    if rights and not message.needs:
        raise SpecificationError(
            message.place,
            f"{message.name} does not say which right it needs",
            f"write need: {{right: ...}}, one of {', '.join(rights)}",
        )
    for need in message.needs:
        if need.right not in rights:
            raise SpecificationError(
                message.place,
                f"{message.name}: the family declares no right {need.right!r}",
                f"declare it below rights in {model.declared.file}; there are: {', '.join(rights) or 'none'}",
            )
        if need.of:
            field_of(model, message, need.of)
        flag = message.field_named(need.when) if need.when else None
        if need.when and (flag is None or flag.type != "bool"):
            raise SpecificationError(
                message.place,
                f"{message.name}: {need.when!r} is no flag of it",
                "name a field that is a bool",
            )
