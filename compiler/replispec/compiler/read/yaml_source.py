"""YAML files of the specification as trees that remember their lines.

The dialect is small on purpose: mappings, lists, texts, decimal integers, true, false and null. Anchors
and aliases, doubled keys, and YAML's other spellings of truth (yes, on) are refused: `on` as a key
would silently become true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

from replispec.compiler.model.message import Place, SpecificationError

DEPTH_MAX: Final = 100
"""Mappings and lists within each other: the parser in C survives no text of brackets alone."""
DIGITS_MAX: Final = 40
"""Digits of a number: more than any type holds."""
REMEMBERED: Final = 512
"""Files whose trees are kept: those of a specification and of a copy that was edited."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_TRUTH = {"true": True, "false": False}
_AMBIGUOUS = {"yes", "no", "on", "off", "y", "n"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, an integer, a truth value or nothing, and how it was written."""

    place: Place
    value: str | int | bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    place: Place
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A mapping; `keys` holds the place of every key."""

    place: Place
    items: Mapping[str, Node]
    keys: Mapping[str, Place]

    def only(self, *allowed: str) -> None:
        """Refuse keys outside `allowed`."""
        for key, place in self.keys.items():
            if key not in allowed:
                raise SpecificationError(
                    place, f"unknown option {key!r}", f"use one of: {', '.join(allowed)}"
                )

    def place_of(self, key: str) -> Place:
        """Where the key stands, else where the mapping starts."""
        return self.keys.get(key, self.place)

    def text(self, key: str, default: str | None = None) -> str:
        """The text (or number, as it was written) under `key`."""
        node = self.items.get(key)
        if node is None and default is not None:
            return default
        if not isinstance(node, Scalar) or node.value is None:
            raise SpecificationError(
                self.place_of(key), f"{key!r} is missing or not a text", f"write {key}: TEXT"
            )
        return " ".join(node.text.split())

    def flag(self, key: str) -> bool:
        """The truth value under `key`; false when absent."""
        node = self.items.get(key)
        if node is None:
            return False
        if not isinstance(node, Scalar) or not isinstance(node.value, bool):
            raise SpecificationError(self.place_of(key), f"{key!r} is no truth value", "write true or false")
        return node.value

    def tree(self, key: str) -> Tree:
        """The mapping under `key`; an empty one when absent."""
        node = self.items.get(key)
        if node is None:
            return Tree(self.place, {}, {})
        if not isinstance(node, Tree):
            raise SpecificationError(
                self.place_of(key), f"{key!r} is not a mapping", f"write {key}: {{name: value}}"
            )
        return node

    def trees(self, key: str) -> Iterator[tuple[str, Tree]]:
        """The entries of the mapping of mappings under `key`, in order."""
        yield from self.tree(key).entries()

    def entries(self) -> Iterator[tuple[str, Tree]]:
        """The entries of this mapping of mappings, in order."""
        for name in self.items:
            yield name, self.tree(name)

    def listed(self, key: str) -> tuple[Tree, ...]:
        """The list of mappings under `key`; empty when absent."""
        node = self.items.get(key)
        if node is None:
            return ()
        items = node.items if isinstance(node, Sequence) else ()
        if not items or not all(isinstance(item, Tree) for item in items):
            raise SpecificationError(
                self.place_of(key), f"{key!r} is not a list of mappings", f"write {key}: [{{...}}, {{...}}]"
            )
        return tuple(item for item in items if isinstance(item, Tree))

    def texts(self, key: str) -> tuple[str, ...]:
        """The text or the list of texts under `key`; empty when absent."""
        node = self.items.get(key)
        if node is None:
            return ()
        items = node.items if isinstance(node, Sequence) else (node,)
        if not all(isinstance(item, Scalar) and item.value is not None for item in items):
            raise SpecificationError(
                self.place_of(key),
                f"{key!r} is neither a text nor a list of texts",
                f"write {key}: [TEXT, TEXT]",
            )
        return tuple(item.text for item in items if isinstance(item, Scalar))


Node = Scalar | Sequence | Tree


def read_yaml(path: Path, spec: Path) -> Tree:
    """The mapping that a file of the specification holds; places are relative to `spec`.

    Raises SpecificationError when it is no YAML or uses what the dialect does not have.
    """
    file = path.relative_to(spec).as_posix()
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SpecificationError(Place(file), "the file is not UTF-8", "save it as UTF-8") from error
    return parse_yaml(text, file)


@lru_cache(maxsize=REMEMBERED)
def parse_yaml(text: str, file: str) -> Tree:
    """The mapping that `text` holds; `file` is its name in places. Raises like `read_yaml`."""
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_MAX:
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise SpecificationError(
                    Place(file, line), f"this is nested more than {DEPTH_MAX} deep", "write it flat"
                )
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise SpecificationError(
                    Place(file, line), "anchors and aliases are not in the language", "write it out"
                )
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        reason = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error).split("\n")[0]
        raise SpecificationError(
            Place(file, mark.line + 1 if mark else 0),
            f"this is no YAML ({reason})",
            "quote texts that hold `: `, `, ` or brackets",
        ) from error
    tree = _node(root, file) if root is not None else None
    if not isinstance(tree, Tree):
        raise SpecificationError(
            Place(file, 1), "the file is no mapping", "start with a key, as `machine: NAME`"
        )
    return tree


def _node(node: yaml.Node, file: str) -> Node:
    place = Place(file, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _tree(node, place, file)
    if isinstance(node, yaml.SequenceNode):
        return Sequence(place, tuple(_node(item, file) for item in node.value))
    text = str(node.value)
    if getattr(node, "style", None):
        return Scalar(place, text, text)
    if text in ("", "null", "~"):
        return Scalar(place, None, text)
    if text in _TRUTH:
        return Scalar(place, _TRUTH[text], text)
    if text.lower() in _AMBIGUOUS:
        raise SpecificationError(
            place, f"YAML reads {text!r} as a truth value", "write true or false, or quote it"
        )
    if len(text) > DIGITS_MAX and _INTEGER.fullmatch(text):
        raise SpecificationError(place, f"a number of {len(text)} digits", "no type holds it: write a text")
    return Scalar(place, int(text) if _INTEGER.fullmatch(text) else text, text)


def _tree(node: yaml.MappingNode, place: Place, file: str) -> Tree:
    items: dict[str, Node] = {}
    keys: dict[str, Place] = {}
    for key_node, value in node.value:
        where = Place(file, key_node.start_mark.line + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            raise SpecificationError(where, "a key is not a text", "write key: value")
        key = str(key_node.value)
        if key.lower() in _AMBIGUOUS and not key_node.style:
            raise SpecificationError(
                where,
                f"YAML reads the key {key!r} as a truth value",
                "write event: for an event" if key.lower() == "on" else "take another name, or quote it",
            )
        if key in items:
            raise SpecificationError(where, f"the key {key!r} stands twice", "remove one of them")
        items[key] = _node(value, file)
        keys[key] = where
    return Tree(place, items, keys)
