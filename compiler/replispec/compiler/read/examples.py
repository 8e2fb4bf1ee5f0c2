"""From YAML to golden bytes."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.model.example import Example
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import Field, Message, Model, SpecificationError
from replispec.compiler.read.yaml_source import Node, Scalar, Tree
from replispec.compiler.read.yaml_source import Sequence as Items

_TYPES = {"string": str, "bool": bool, "int32": int, "int64": int, "uint32": int}


def read_examples(tree: Tree, model: Model) -> Iterator[Example]:
    """The examples of one file of vectors. Raises SpecificationError for unknown names and bad bytes."""
    tree.only("messages")
    for item in tree.listed("messages"):
        with attempt():
            item.only("name", "message", "given", "bytes", "fields", "clause")
            message = model.messages.get(item.text("message"))
            if message is None or message.layout != "BINARY":
                raise SpecificationError(
                    item.place_of("message"),
                    f"no binary message is named {item.text('message')!r}",
                    "name one of spec/proto",
                )
            yield Example(
                item.text("name"),
                message.name,
                _given(item, message),
                tuple(_groups(item)),
                _fields(item.tree("fields"), message, model),
                item.texts("clause"),
                item.place,
            )


def _given(item: Tree, message: Message) -> dict[str, int]:
    given = item.tree("given")
    given.only(*(each.name for each in message.given))
    found = {}
    for each in message.given:
        node = given.items.get(each.name)
        if not isinstance(node, Scalar) or type(node.value) is not int:
            raise SpecificationError(
                item.place, f"{message.name} is not given its {each.name}", f"write given: {{{each.name}: 1}}"
            )
        found[each.name] = node.value
    return found


def _groups(item: Tree) -> Iterator[tuple[bytes, str]]:
    place = item.place_of("bytes")
    for line in item.texts("bytes"):
        digits, _, reason = line.partition("|")
        try:
            data = bytes.fromhex(digits)
        except ValueError:
            raise SpecificationError(
                place, f"{digits.strip()!r} are no bytes", "write pairs of hexadecimal digits"
            ) from None
        if not reason.strip():
            raise SpecificationError(
                place,
                f"nothing is said about {digits.strip()!r}",
                "say what it is, as 00 04 | the key",
            )
        yield data, reason.strip()


def _fields(tree: Tree, message: Message, model: Model) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, node in tree.items.items():
        field = message.field_named(name)
        if field is None:
            raise SpecificationError(
                tree.place_of(name), f"{message.name} has no field {name!r}", "name fields of the message"
            )
        found[name] = _value(node, field, model, repeated=field.repeated)
    return found


def _value(node: Node, field: Field, model: Model, *, repeated: bool) -> object:
    if isinstance(node, Scalar) and node.value is None and (field.nullable or field.when or field.optional):
        return None
    if repeated and isinstance(node, Items):
        return [_value(item, field, model, repeated=False) for item in node.items]
    if not repeated and isinstance(node, Tree) and field.is_message:
        return _fields(node, model.messages[field.type], model)
    if not repeated and isinstance(node, Scalar):
        if field.type == "bytes":
            return _hexadecimal(node)
        if type(node.value) is (int if field.is_enum else _TYPES.get(field.type)):
            return node.value
    raise SpecificationError(node.place, f"this is no value of {field.name}", f"give {field.type}")


def _hexadecimal(node: Scalar) -> bytes:
    try:
        return bytes.fromhex(node.text)
    except ValueError:
        raise SpecificationError(
            node.place, f"{node.text!r} are no bytes", "write pairs of hexadecimal digits, quoted"
        ) from None
