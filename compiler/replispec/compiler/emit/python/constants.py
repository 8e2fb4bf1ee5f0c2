"""The Python module of a family's constants."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import TYPING, Constant, Module
from replispec.compiler.model.constant import NamedConstant


def constants_text(constants: Mapping[str, NamedConstant], family: str, sources: Mapping[str, bytes]) -> str:
    """The module with one name for each constant."""
    about = f"Constants of {family} that stand in no message."
    final = str(TYPING.Final)
    nodes = [
        Constant(each.name, repr(each.value), final, each.about, is_listed=True)
        for each in constants.values()
    ]
    return Module(f"replispec.wire.{family}.constants", certificate(sources), about, [*nodes]).text()
