"""The Python module, and the Markdown page, of a family's constants."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import TYPING, Module
from replispec.compiler.emit.python.tree import Constant as Name
from replispec.compiler.read.constants import Constant


def constants_text(constants: Mapping[str, Constant], family: str, sources: Mapping[str, bytes]) -> str:
    """The module with one name for each constant."""
    about = f"Constants of {family} that stand in no message."
    final = str(TYPING.Final)
    nodes = [Name(each.name, repr(each.value), final, each.about) for each in constants.values()]
    return Module(f"replispec.wire.{family}.constants", certificate(sources), about, [*nodes]).text()


def constants_document(constants: Mapping[str, Constant], sources: Mapping[str, bytes]) -> str:
    """The page with a row for each constant."""
    rows = [(f"`{one.name}`", f"`{one.value}`", one.about, one.source) for one in constants.values()]
    head = ("constant", "value", "what it is", "comes from")
    return "\n".join([*banner(sources), "# Constants", "", *table(head, rows)])
