"""The compiler's model as one tree of nodes, made without knowing its classes.

Every dataclass of the model becomes a node with its attributes as facts; what it holds under names or in
lists becomes its children. Nothing is left out but places, what no comparison looks at, and what is none
or empty, so that two trees differ wherever two models do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final

from replispec.compiler.language.text import to_text
from replispec.compiler.model.expressions import Expression
from replispec.compiler.model.message import Place, VersionRange
from replispec.compiler.model.value_types import Type

# What a class of the model is called in a report; others get their own name in small letters.
KINDS: Final = {
    "EnumValue": "value",
    "NamedConstant": "constant",
    "PathSpec": "path",
    "RuleSource": "rule",
    "Transition": "edge",
    "EventStream": "stream",
    "StreamEvent": "event",
    "OwnMessage": "own message",
    "OwnField": "own field",
    "OwnEnum": "own enum",
    "OwnValue": "own value",
    "Given": "given number",
    "Idle": "name without effect",
    "Group": "group of parameters",
    "FoldStep": "step",
    "Coverage": "document",
    "AnswerForm": "answer",
    "RecordForm": "record",
}
_WORD: Final = re.compile(r"\w+")
# What only puts others together: the ids of what it holds do not name it.
_FRAMES: Final = ("Group",)
# What identifies an object among its like, or says where it stands.
_NAMES: Final = ("name", "id", "place")


@dataclass(eq=False, slots=True, weakref_slot=True)
class SpecNode:
    """One object of the model.

    `facts` holds its attributes; an entry of a mapping stands under ATTRIBUTE.KEY. `children` are by
    attribute and key; `lists` names the attributes whose children have an order and no name of their own.
    """

    kind: str
    name: str
    id: str
    place: Place
    thing: object
    parent: SpecNode | None
    facts: dict[str, Any] = field(default_factory=dict)
    children: dict[str, dict[str, SpecNode]] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)

    def up(self) -> Iterator[SpecNode]:
        """This node and all above it, nearest first."""
        node: SpecNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[SpecNode]:
        """This node and all below it."""
        yield self
        for children in self.children.values():
            for child in children.values():
                yield from child.below()

    @property
    def root(self) -> SpecNode:
        """The node of the whole family."""
        return list(self.up())[-1]


def tree(family: str, parts: Mapping[str, object]) -> SpecNode:
    """The tree of a family: `parts` are collections of objects by what they are called."""
    root = SpecNode("family", family, "", Place(""), None, None)
    owned = {id(thing) for part in parts.values() for thing in _objects(part)}
    for attribute, part in parts.items():
        _part(root, attribute, part, owned)
    return root


def _part(root: SpecNode, attribute: str, part: Any, owned: set[int]) -> None:
    """One collection of the family; an object without a name of its own only holds further ones."""
    if _is_dataclass(part) and not _is_object(part):
        for each in fields(part):
            _part(root, each.name, getattr(part, each.name), owned)
    else:
        _take(root, attribute, part, owned)


def _objects(part: Any) -> Iterator[object]:
    if _is_dataclass(part) and not _is_object(part):
        for each in fields(part):
            yield from _objects(getattr(part, each.name))
    elif isinstance(part, Mapping):
        yield from part.values()
    elif isinstance(part, Sequence):
        yield from part


def _node(parent: SpecNode, thing: Any, name: str, identity: str, owned: set[int]) -> SpecNode:
    place = getattr(thing, "place", None) or parent.place
    node = SpecNode(_kind(thing), name, identity, place, thing, parent)
    for each in _form(type(thing)).compared:
        _take(node, each, getattr(thing, each), owned)
    return node


def _take(node: SpecNode, attribute: str, value: Any, owned: set[int]) -> None:
    """Make facts or children of one attribute."""
    if node.parent is not None and id(value) in owned:
        node.facts[attribute] = getattr(value, "name", "")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _entry(node, attribute, key, item, owned)
    elif value is None or value == () or (_is_dataclass(value) and not value):
        return
    elif isinstance(value, (list, tuple)) and all(map(_is_object, value)):
        _listed(node, attribute, value, owned)
    elif _is_dataclass(value) and not _is_object(value) and _holds_objects(value):
        for each in _form(type(value)).names:
            _take(node, each, getattr(value, each), owned)
    elif _is_object(value):
        identity = _joined(node, attribute)
        node.children.setdefault(attribute, {})[attribute] = _node(node, value, attribute, identity, owned)
    else:
        node.facts[attribute] = value


def _entry(node: SpecNode, attribute: str, key: object, item: Any, owned: set[int]) -> None:
    """One entry of a mapping: a child, several (the edges of a pair), or a fact."""
    name = " on ".join(key) if isinstance(key, tuple) else str(key)
    children = node.children.setdefault(attribute, {})
    if isinstance(item, tuple) and item and all(map(_is_object, item)):
        node.lists.add(attribute)
        for number, each in enumerate(item):
            child = _node(node, each, name, f"{node.id}: {name}", owned)
            children[f"{name}#{number}"] = child
    elif _is_object(item) and not (id(item) in owned and node.parent is not None):
        children[name] = _node(node, item, name, _joined(node, name), owned)
    else:
        node.facts[f"{attribute}.{name}"] = item


def _listed(node: SpecNode, attribute: str, items: Sequence[Any], owned: set[int]) -> None:
    names = [str(getattr(each, "name", "") or getattr(each, "id", "")) for each in items]
    children = node.children.setdefault(attribute, {})
    is_named = all(names) and len(set(names)) == len(names)
    if not is_named:
        node.lists.add(attribute)
    for number, (name, each) in enumerate(zip(names, items, strict=True)):
        shown = name if is_named else _label(each)
        key = name if is_named else f"{attribute}#{number}"
        children[key] = _node(node, each, shown, _joined(node, shown), owned)


def _label(thing: Any) -> str:
    """What an object without a name is called: its kind and what tells it best from its like."""
    hints = (getattr(thing, name, None) for name in ("versions", "number", "event", "title"))
    best = next((str(each) for each in hints if isinstance(each, (VersionRange, int, str)) and each), "")
    return f"{_kind(thing)} {best}".strip()


def _kind(thing: object) -> str:
    name = type(thing).__name__.removesuffix("Spec")
    return KINDS.get(name) or "".join(f" {each.lower()}" if each.isupper() else each for each in name).strip()


def _joined(node: SpecNode, name: str) -> str:
    if type(node.thing).__name__ in _FRAMES:
        return name
    return f"{node.id}.{name}" if node.id else name


@dataclass(frozen=True, slots=True)
class _Form:
    """What is asked of the values of a class, each thousands of times: see below, and what they hold."""

    is_dataclass: bool
    is_object: bool
    names: tuple[str, ...]
    compared: tuple[str, ...]


# Of classes that were met: there are as many as the model has.
_FORMS: Final[dict[type[Any], _Form]] = {}


def _form(kind: type[Any]) -> _Form:
    found = _FORMS.get(kind)
    if found is None:
        held = fields(kind) if is_dataclass(kind) else ()
        names = tuple(each.name for each in held)
        is_more = is_dataclass(kind) and not issubclass(kind, (Expression, Type, VersionRange, Place, type))
        is_named = any(name in names or hasattr(kind, name) for name in _NAMES)
        compared = tuple(each.name for each in held if each.name not in _NAMES and each.compare)
        found = _FORMS[kind] = _Form(is_more, is_more and is_named, names, compared)
    return found


def _is_dataclass(value: object) -> bool:
    """True for a dataclass that is more than one value."""
    return _form(type(value)).is_dataclass


def _is_object(value: object) -> bool:
    """True for a dataclass that is worth a node of its own."""
    return _form(type(value)).is_object


def _holds_objects(value: Any) -> bool:
    """True when an object without a name, as all bindings of a machine, only holds objects that have one."""
    return any(
        any(map(_is_object, held.values() if isinstance(held, Mapping) else held))
        for held in (getattr(value, name) for name in _form(type(value)).names)
        if isinstance(held, (Mapping, tuple, list))
    )


def plain(value: Any) -> Any:
    """A fact without the places in it: two of them are equal when they say the same."""
    if _is_dataclass(value):
        said = [each.name for each in fields(value) if each.name != "place"]
        return type(value).__name__, tuple((name, plain(getattr(value, name))) for name in said)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    return value


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A fact without places, expressions and types in it taken apart, with the new names of what it names."""
    if isinstance(value, str):
        return _WORD.sub(lambda word: names.get(word[0], word[0]), value) if names else value
    if is_dataclass(value) and not isinstance(value, type):
        said = [each.name for each in fields(value) if each.name != "place" and each.compare]
        return type(value).__name__, *(renamed(getattr(value, name), names) for name in said)
    if isinstance(value, Mapping):
        return {renamed(key, names): renamed(item, names) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(renamed(item, names) for item in value)
    if isinstance(value, frozenset):
        return frozenset(renamed(item, names) for item in value)
    return value


def shown(value: Any) -> str:
    """A fact for a reader: expressions in their own language, nothing as `none`."""
    if value is None or value == "" or value == ():
        return "none"
    if isinstance(value, Expression):
        return to_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ", ".join(map(shown, value))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True, default=shown, ensure_ascii=False)
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(shown, value)))
    if _is_dataclass(value):
        return ", ".join(f"{each.name} {shown(getattr(value, each.name))}" for each in fields(value))
    return str(value)
