"""What a family declares of itself, as objects that are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replispec.compiler.model.declared import Declared, Protocol
from replispec.compiler.model.message import Place
from replispec.compiler.read.yaml_source import Tree, read_yaml


@dataclass(frozen=True, slots=True)
class Description:
    """What the family is, in a sentence."""

    name: str
    about: str
    place: Place


@dataclass(frozen=True, slots=True)
class Party:
    """Who sends or receives messages."""

    name: str
    about: str
    place: Place


@dataclass(frozen=True, slots=True)
class Framing:
    """How bytes are cut into frames; families that name one share its codes."""

    name: str
    about: str
    flags: str
    place: Place


@dataclass(frozen=True, slots=True)
class Order:
    """An order of keys: that of a hash table of this initial capacity."""

    name: str
    hash_map: int
    place: Place


@dataclass(frozen=True, slots=True)
class Dissector:
    """What Wireshark shows, without its protocols; see Dissection."""

    name: str
    extended: str
    parts: tuple[str, ...]
    streams: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]
    protocols: tuple[Protocol, ...]
    place: Place


def declared_parts(spec: Path, family: str, declared: Declared) -> dict[str, object]:
    """What stands in the family's file, by collection; nothing when it has none."""
    if not (spec / declared.file).is_file():  # older specifications declare nothing
        return {}
    tree = read_yaml(spec / declared.file, spec)
    parts: dict[str, object] = {
        "description": {family: Description(family, declared.about, tree.place_of("about"))},
        "parties": {
            name: Party(name, about, _place(tree, "parties", name))
            for name, about in declared.parties.items()
        },
        "framings": {
            name: Framing(name, about, declared.flags.get(name, ""), _place(tree, "framings", name))
            for name, about in declared.framings.items()
        },
        "orders": {
            name: Order(name, capacity, _place(tree, "orders", name))
            for name, capacity in declared.orders.items()
        },
    }
    shown = declared.dissection
    if shown is not None:
        place = tree.place_of("dissector")
        one = Dissector(
            "dissector",
            shown.extended,
            shown.parts,
            shown.streams,
            shown.fields,
            shown.values,
            shown.protocols,
            place,
        )
        parts["dissector"] = {one.name: one}
    return parts


def _place(tree: Tree, section: str, name: str) -> Place:
    return tree.tree(section).place_of(name)
