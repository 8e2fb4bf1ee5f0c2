"""The Python modules that load a family's clauses and golden vectors."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import PRIMITIVES, TYPING, Constant, Module, Names

_CLAUSES = Names(f"{PRIMITIVES}.clauses")
_DATA = Names(f"{PRIMITIVES}.data")


def clauses_text(family: str, sources: Mapping[str, bytes]) -> str:
    """The module of the clauses, not yet formatted."""
    package = f"replispec.wire.{family}"
    about = f"The clauses of {family} by id, with where the specification checks each."
    value = f'{_CLAUSES.read_clauses}({_DATA.load}("{package}", "clauses.json")["clauses"])'
    node = Constant("CLAUSES", value, f"{TYPING.Final}[dict[str, {_CLAUSES.Clause}]]")
    return Module(f"{package}.clauses", certificate(sources), about, [node]).text()


def vectors_text(family: str, sources: Mapping[str, bytes]) -> str:
    """The module of the golden vectors, not yet formatted."""
    package = f"replispec.wire.{family}"
    about = (
        f"Golden vectors of {family}: rules with answers, messages with bytes, as plain values.\n\n"
        "A message is a mapping of its fields, what is absent is None, bytes are hexadecimal."
    )
    entry = f"dict[str, {TYPING.Any}]"
    nodes = [
        Constant("_DATA", f'{_DATA.load}("{package}", "vectors.json")', str(TYPING.Any)),
        Constant("RULES", '_DATA["rules"]', f"{TYPING.Final}[dict[str, {entry}]]"),
        Constant("MESSAGES", '_DATA["messages"]', f"{TYPING.Final}[list[{entry}]]"),
    ]
    return Module(f"{package}.vectors", certificate(sources), about, [*nodes]).text()
