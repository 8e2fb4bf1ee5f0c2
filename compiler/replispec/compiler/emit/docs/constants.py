"""The Markdown page of a family's constants."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.constant import NamedConstant


def constants_document(constants: Mapping[str, NamedConstant], sources: Mapping[str, bytes]) -> str:
    """The page with a row for each constant."""
    rows = [(f"`{one.name}`", f"`{one.value}`", one.about, one.source) for one in constants.values()]
    head = ("constant", "value", "what it is", "comes from")
    return "\n".join([*banner(sources), "# Constants", "", *table(head, rows)])
