"""Reads what a family declares of itself: families/FAMILY.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from replispec.compiler.model.declared import Declared, Dissection, Filter, Protocol
from replispec.compiler.model.message import Message, Model, SpecificationError
from replispec.compiler.read.yaml_source import Tree, read_yaml

# Orders that need no declaration.
ORDERS = ("DECLARED", "ALPHABETICAL")


def declared_file(family: str) -> str:
    """Where a family declares itself, relative to the specification."""
    return f"families/{family}.yaml"


def read_declared(spec: Path, family: str) -> Declared:
    """What the family declares; nothing when it has no such file. Raises SpecificationError."""
    file = declared_file(family)
    if not (spec / file).is_file():
        return Declared(file)
    tree = read_yaml(spec / file, spec)
    tree.only("about", "parties", "framings", "orders", "dissector", "rights")
    return Declared(
        file,
        tree.text("about"),
        _words(tree.tree("parties")),
        dict(_framings(tree.tree("framings"))),
        {name: _capacity(name, order) for name, order in _orders(tree)},
        _dissection(tree.tree("dissector")) if "dissector" in tree.items else None,
        _words(tree.tree("rights")),
        dict(_flags(tree.tree("framings"))),
    )


def declare(model: Model, declared: Declared) -> None:
    """Give the model what its family declares. Raises SpecificationError for a name that is not declared."""
    check_declared(model, declared)
    model.declared = declared
    for name, message in model.messages.items():
        model.messages[name] = replace(message, hash_capacity=declared.orders.get(message.order, 0))


def check_declared(model: Model, declared: Declared) -> None:
    """Raises SpecificationError for a party or an order that is not declared."""
    for framing, flags in declared.flags.items():
        if flags not in model.enums:
            raise SpecificationError(
                declared.file,
                f"framing {framing}: the family has no enum {flags!r}",
                f"write the enum of its bits; there are: {', '.join(model.enums) or 'none'}",
            )
    orders = (*ORDERS, *declared.orders)
    for message in model.messages.values():
        for party in (message.sender, message.receiver):
            if party and party not in declared.parties:
                _refuse(message, f"party {party!r}", f"parties in {declared.file}", tuple(declared.parties))
        for order in (message.order, message.binary_order):
            if order and order not in orders:
                _refuse(message, f"order {order!r}", f"orders in {declared.file}", orders)
        if message.layout == "JSON" and message.order in declared.orders:
            raise SpecificationError(
                message.place,
                f"{message.name}: keys of a JSON body have no order {message.order!r}",
                f"write one of {', '.join(ORDERS)}; hash maps order header fields alone",
            )


def _refuse(message: Message, what: str, section: str, known: tuple[str, ...]) -> None:
    raise SpecificationError(
        message.place,
        f"{message.name}: the family declares no {what}",
        f"declare it below {section}; there are: {', '.join(known) or 'none'}",
    )


def _words(tree: Tree) -> dict[str, str]:
    return {name: tree.text(name) for name in tree.items}


def _framings(tree: Tree) -> Iterator[tuple[str, str]]:
    """What each framing is: a text, or what is said as `about` beside its flags."""
    for name, node in tree.items.items():
        yield name, node.text("about") if isinstance(node, Tree) else tree.text(name)


def _flags(tree: Tree) -> Iterator[tuple[str, str]]:
    for name, node in tree.items.items():
        if isinstance(node, Tree):
            node.only("about", "flags")
            yield name, node.text("flags")


def _orders(tree: Tree) -> Iterator[tuple[str, Tree]]:
    for name, order in tree.trees("orders"):
        if name in ORDERS:
            raise SpecificationError(
                tree.tree("orders").place_of(name), f"{name} means something already", "take another name"
            )
        yield name, order


def _capacity(name: str, order: Tree) -> int:
    order.only("hash_map", "about")
    text = order.text("hash_map")
    if not text.isdecimal() or int(text).bit_count() != 1:
        raise SpecificationError(
            order.place_of("hash_map"), f"{name}: {text!r} is no capacity", "write a power of two, as 16"
        )
    return int(text)


def _dissection(tree: Tree) -> Dissection:
    tree.only("extended", "parts", "protocols", "streams", "fields", "values")
    return Dissection(
        tuple(_protocol(name, protocol) for name, protocol in tree.trees("protocols")),
        tree.text("extended", ""),
        tree.texts("parts"),
        tree.texts("streams"),
        {name: tree.tree("fields").texts(name) for name in tree.tree("fields").items},
        {name: tree.tree("values").texts(name) for name in tree.tree("values").items},
    )


def _protocol(name: str, tree: Tree) -> Protocol:
    tree.only("title", "streams", "messages", "derived")
    derived = tuple(_derived(f"{name}.{own}", each) for own, each in tree.trees("derived"))
    return Protocol(name, tree.text("title"), tree.text("streams"), tree.texts("messages"), derived)


def _derived(name: str, tree: Tree) -> Filter:
    tree.only("type", "title", "about", "enum")
    return Filter(name, tree.text("type"), tree.text("title"), tree.text("about"), tree.text("enum", ""))
