"""constants/FAMILY/*.yaml: names for numbers and texts that stand in no message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from replispec.compiler.model.constant import NamedConstant
from replispec.compiler.model.message import Field, Model, Place, SpecificationError
from replispec.compiler.model.parameter import ConfigurationSpec
from replispec.compiler.read.yaml_source import Scalar, Tree

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_SOURCES: Final = ("value", "default_of", "mask_of", "greatest_of")

_NUMBERS: Final = {"int32": (32, True), "int64": (64, True), "uint32": (32, False)}
"""The bits of a number of each type, and whether it has a sign."""


def read_constants(
    trees: Mapping[str, Tree], model: Model, configuration: ConfigurationSpec
) -> dict[str, NamedConstant]:
    """The constants of a family, by name. Raises SpecificationError."""
    found: dict[str, NamedConstant] = {}
    for tree in trees.values():
        tree.only("constants")
        for each in _constants(tree, model, configuration):
            if each.name in found:
                raise SpecificationError(
                    each.place, f"the constant {each.name} stands twice", f"see {found[each.name].place}"
                )
            found[each.name] = each
    return found


def _constants(file: Tree, model: Model, configuration: ConfigurationSpec) -> Iterator[NamedConstant]:
    for name, tree in file.trees("constants"):
        tree.only("about", *_SOURCES)
        place = file.tree("constants").place_of(name)
        if not _NAME.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name of a constant", "use capitals joined by _")
        given = [key for key in _SOURCES if key in tree.items]
        if len(given) != 1:
            raise SpecificationError(
                place, f"{name} has {len(given)} values", f"give one of {', '.join(_SOURCES)}"
            )
        value, source = _value(tree, given[0], model, configuration)
        yield NamedConstant(name, value, tree.text("about"), source, place)


def _value(tree: Tree, key: str, model: Model, configuration: ConfigurationSpec) -> tuple[int | str, str]:
    place = tree.place_of(key)
    if key == "value":
        node = tree.items[key]
        if not isinstance(node, Scalar) or isinstance(node.value, bool) or node.value is None:
            raise SpecificationError(place, "this is neither a number nor a text", "write value: 0")
        return node.value, ""
    text = tree.text(key)
    if key == "default_of":
        parameter = configuration.parameters.get(text)
        if parameter is None or not isinstance(parameter.default, int | str):
            raise SpecificationError(
                place, f"no parameter {text!r} has a default", "name one of spec/parameters"
            )
        return parameter.default, f"the default of {text}"
    field = _field(text, model, place)
    if key == "greatest_of":
        return _greatest(field, text, place), f"the greatest that {text} holds"
    if field.checksum is None:
        raise SpecificationError(
            place, f"{text!r} is no field with a checksum", "write MESSAGE.FIELD of a message in spec/proto"
        )
    return field.checksum.mask, f"the mask of {text}"


def _field(text: str, model: Model, place: Place) -> Field:
    """The field that is named as MESSAGE.FIELD. Raises SpecificationError."""
    name, _, part = text.partition(".")
    message = model.messages.get(name)
    field = message.field_named(part) if message is not None else None
    if field is None:
        raise SpecificationError(
            place, f"{text!r} is no field of a message", "write MESSAGE.FIELD of a message in spec/proto"
        )
    return field


def _greatest(field: Field, text: str, place: Place) -> int:
    """The greatest number of a field, or the most bytes that the length before it can say."""
    if field.maximum is not None:
        return field.maximum
    if field.type in _NUMBERS and not field.repeated:
        bits, is_signed = _NUMBERS[field.type]
        return (1 << (8 * field.size or bits) - is_signed) - 1
    if field.prefix:
        # A length of one byte has no sign.
        return (1 << 8 * field.prefix - (field.prefix > 1)) - 1
    raise SpecificationError(
        place, f"{text!r} has no bound", "name a number, or what has a length in front of it"
    )
