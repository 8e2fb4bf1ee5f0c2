"""What is neutral of a framing: who speaks it, and what the bits of its frames mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.compiler.emit.python.codes import certificate, enum_nodes
from replispec.compiler.emit.python.format import format_files
from replispec.compiler.emit.python.tree import Constant, Module, Node
from replispec.compiler.model.message import Enum, Model

FRAMINGS = "replispec.wire.framings"
_ABOUT = "Framings: which families speak each, and what the bits of its frames mean, whoever's they are."


def framings_files(models: Sequence[Model], sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """The module of all framings, path below generated/ -> content; none when there is no framing."""
    speakers: dict[str, list[str]] = {}
    for model in models:
        for name in model.declared.framings:
            speakers.setdefault(name, []).append(model.family)
    if not speakers:
        return {}
    rows = " ".join(f'"{name}": {tuple(sorted(speakers[name]))!r},' for name in sorted(speakers))
    about = "The families that speak a framing, by its name: one tells their requests by code."
    nodes: list[Node] = [Constant("SPEAKERS", f"{{{rows}}}", "dict[str, tuple[str, ...]]", about)]
    for model in models:
        for enum in flags_of(model):
            nodes += enum_nodes(enum)
    text = Module(FRAMINGS, certificate(sources), _ABOUT, nodes).text()
    path = f"{FRAMINGS.replace('.', '/')}.py"
    return {path: format_files({path: text})[path].encode()}


def flags_of(model: Model) -> list[Enum]:
    """The enums of bits of the framings that the family declares."""
    return [model.enums[name] for name in model.declared.flags.values()]
