"""Python modules of one family's messages: one class each.

Pure functions of the model and the sources' bytes; the driver writes and formats what they return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python import binary as emit_binary
from replispec.compiler.emit.python import binary_fields, second_json
from replispec.compiler.emit.python import keyed as emit_keyed
from replispec.compiler.emit.python import text as emit_text
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.fixed import fixed_class
from replispec.compiler.emit.python.tree import (
    DATACLASSES,
    TYPING,
    WIDTH,
    Class,
    Constant,
    FunctionDef,
    Module,
    Node,
    homes,
)
from replispec.compiler.model.layout import is_inner, is_last_number
from replispec.compiler.model.message import Field, Message, Model, When


def module_text(model: Model, module: str, sources: Mapping[str, bytes]) -> str:
    """The Python text (unformatted) of all messages of one .proto file.

    `sources` holds the specification's files that decide the text, for the certificate of birth.
    """
    package = f"replispec.wire.{model.family}"
    messages = [message for message in model.messages.values() if message.module == module]
    zeros = {
        enum.name: next((v.name for v in enum.values if v.number == 0), "") for enum in model.enums.values()
    }
    nodes: list[Node] = []
    for message in messages:
        if message.layout == "BINARY":
            nodes += binary_fields.structs(message)
        if message.also:
            nodes.append(second_json.plain_reader(message, zeros))
    for message in _needed_first(messages):
        if message.layout == "BINARY" and message.head:
            nodes.append(fixed_class(message))
        nodes.append(_class(message, zeros))
    home = dict.fromkeys(model.enums, f"{package}.codes")
    home |= {each.name: f"{package}.{each.module}" for each in model.messages.values()}
    about = f"The messages of {module}.proto."
    return Module(f"{package}.{module}", certificate(sources), about, nodes, homes(model)).text()


def _needed_first(messages: list[Message]) -> list[Message]:
    """The messages in their order, but those that a declaration of another one names before it."""
    by_name = {message.name: message for message in messages}
    found: dict[str, Message] = {}

    def visit(message: Message) -> None:
        for field in message.fields if message.layout in ("JSON", "BINARY") else ():
            if message.layout == "BINARY" and not (is_inner(field) and field.when is None):
                continue
            inner = by_name.get(field.map_value if emit_keyed.is_map(field) else field.type)
            if inner is not None and inner.name not in found and inner is not message:
                visit(inner)
        found.setdefault(message.name, message)

    for message in messages:
        visit(message)
    return list(found.values())


def _class(message: Message, zeros: Mapping[str, str]) -> Class:
    about = "\n".join(_about(message))
    if emit_keyed.is_keyed(message):
        comments = [describe_use(field) for field in message.fields]
        body: list[Constant | FunctionDef] = [*emit_keyed.declarations(message, comments)]
        return Class(message.name, about, [emit_keyed.base(message)], [emit_keyed.decorator(message)], body)
    base = binary_fields.base(message) if message.layout == "BINARY" else ""
    body = [*_attributes(message, zeros), *_constants(message), *_members(message)]
    decorators = [f"{DATACLASSES.dataclass}(slots=True)"]
    return Class(message.name, about, [base] if base else [], decorators, body)


def _attributes(message: Message, zeros: Mapping[str, str]) -> Iterator[Constant]:
    if message.layout == "TEXT":
        for field in emit_text.text_attributes(message):
            kind, default = emit_text.text_attribute(field)
            yield Constant(field.name, default, kind, comment=describe_layout(field))
        return
    for field in binary_fields.attributes(message):
        default = binary_fields.attribute_default(field, zeros)
        kind = binary_fields.attribute_type(field)
        yield Constant(field.name, default, kind, comment=describe_layout(field))


def _constants(message: Message) -> Iterator[Constant]:
    if message.properties:
        yield Constant("unknown", f"{DATACLASSES.field}(default_factory=dict)", "dict[str, str]")
    if message.also == "JSON":
        yield Constant("unknown", f"{DATACLASSES.field}(default_factory=dict)", "dict[str, object]")
        yield second_json.keys_constant(message)
    if message.layout in ("BINARY", "TEXT"):
        for field in message.fields:
            if field.equals is not None:
                value, kind = str(field.equals), f"{TYPING.ClassVar}[int]"
                yield Constant(field.name, value, kind, comment=describe_layout(field))
    if message.codes:
        codes = f"({', '.join(map(str, message.codes))},)"
        yield Constant("CODES", codes, f"{TYPING.ClassVar}[tuple[int, ...]]")


def _members(message: Message) -> Iterator[FunctionDef]:
    if message.layout == "TEXT":
        yield from emit_text.text_members(message)
        return
    yield from emit_binary.members(message, "_binary" if message.also else "")
    if message.also:
        yield from second_json.second_json_members(message)


def _about(message: Message) -> Iterator[str]:
    """Lines of the docstring: what it is, its layout where bytes have places, who sends it, the clauses."""
    laid_out = [] if emit_keyed.is_keyed(message) else _beside_attributes(message)
    facts = [f"{message.sender} to {message.receiver}."] if message.codes else []
    if message.clauses:
        facts.append(f"Clauses: {', '.join(message.clauses)}.")
    if message.about and not (laid_out or message.given) and len(message.about) <= WIDTH // 2:
        yield " ".join([message.about, *facts])
        return
    if message.about:
        yield message.about
    yield from (f"Given: {given.name} {given.first}..{given.last}." for given in message.given)
    yield from (f"{field.name}: {describe_field(field)}" for field in laid_out)
    if facts:
        yield " ".join(facts)


def _beside_attributes(message: Message) -> list[Field]:
    """The fields that no attribute holds: they follow from the others."""
    if message.layout == "TEXT":
        held = {field.name for field in emit_text.text_attributes(message)}
    else:
        held = {field.name for field in binary_fields.attributes(message)}
    return [field for field in message.fields if field.name not in held and field.equals is None]


def describe_use(field: Field) -> str:
    """Unit, releases and meaning of a field: what its declaration does not say."""
    facts = [field.unit.lower().replace("_", " ")] if field.unit else []
    facts += [str(field.versions)] if field.versions else []
    return "; ".join([*facts, field.about] if field.about else facts)


def describe_field(field: Field) -> str:
    """Type, bytes, unit, releases and meaning of a field in one line."""
    kind = f"map of {field.map_key} to {field.map_value}" if field.type == "map" else field.type
    kind = f"list of {kind}" if field.repeated else kind
    return ", ".join(filter(None, (kind, describe_layout(field))))


def describe_layout(field: Field) -> str:
    """The same without the type, which an attribute says itself."""
    facts = []
    if field.zigzag:
        facts.append("zigzag" if field.size else "zigzag length" if field.prefix else "zigzag number of them")
    elif field.size:
        facts.append(f"{field.size} bytes each" if field.repeated else f"{field.size} bytes")
    if field.prefix and not field.zigzag:
        facts.append(f"length of {field.prefix} bytes before {'each' if field.repeated else 'it'}")
    if field.nullable:
        facts.append("a length of -1: none")
    if field.distinct:
        facts.append("all distinct")
    if field.when:
        facts.append(f"there when {describe_when(field.when)}")
    if is_last_number(field):
        facts.append("absent where the bytes end before it")
    if field.until:
        facts.append(f"up to {field.until}")
    if field.unit:
        facts.append(field.unit.lower().replace("_", " "))
    if field.versions:
        facts.append(str(field.versions))
    text = ", ".join(facts)
    return "; ".join(filter(None, (text, field.about)))


def describe_when(when: When) -> str:
    """The condition under which a field is there, in words."""
    if when.minimum == when.maximum:
        return f"{when.field} is {when.minimum}"
    if when.maximum is None:
        return f"{when.field} is {when.minimum} or more"
    if when.minimum is None:
        return f"{when.field} is {when.maximum} or less"
    return f"{when.field} is {when.minimum} to {when.maximum}"
