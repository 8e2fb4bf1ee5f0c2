"""Expressions of the specification in emitted Python, with references to what they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.compiler.emit.python.tree import DATACLASSES, PRIMITIVES, Names, Ref, plain
from replispec.compiler.language.text import CONSTANTS, to_python
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.machine import VariableSpec
from replispec.compiler.model.message import Model

_UNKNOWN = Names(f"{PRIMITIVES}.unknown")
_LISTS = Names(f"{PRIMITIVES}.lists")
HELPERS: Final = {
    **{
        name: str(getattr(_UNKNOWN, name)) for name in ("UNKNOWN", "is_none", "with_entry", "without_entries")
    },
    **{name: str(getattr(_LISTS, name)) for name in ("part_of", "joined", "item_of", "byte_of", "list_of")},
    "text_of": str(Names(f"{PRIMITIVES}.texts").text_of),
}
_ZEROS: Final = {"bool": "False", "string": '""', "bytes": 'b""', "list": "()", "set": "frozenset()"}
ARGUMENTS: Final = ("variables", "event", "rules")
"""What guards, assignments and named values are functions of."""


def enum_refs(model: Model) -> dict[str, str]:
    """The Python name of every enum class of a family, and of its constants."""
    package = f"replispec.wire.{model.family}"
    codes = Ref(package, "codes")
    return {CONSTANTS: str(Ref(package, "constants")), **{name: f"{codes}.{name}" for name in model.enums}}


def python_of(
    node: ex.Expression,
    model: Model,
    guards: Mapping[tuple[str, str], str] | None = None,
    named: Mapping[ex.Expression, str] | None = None,
) -> str:
    """The expression over `variables`, `event` and `rules`; `named` is what stands for expressions."""
    return to_python(node, enum_refs(model), guards, HELPERS, named=named, keywords=model.keywords)


def initial_value(variable: VariableSpec, model: Model) -> str:
    """A variable's value at the start."""
    if variable.initial is not None:
        return python_of(variable.initial, model)
    if variable.type.key is not None:
        return f"{DATACLASSES.field}(default_factory=dict)"
    return "None" if variable.type.optional else _ZEROS.get(variable.type.kind, "0")


def lambda_of(text: str, names: tuple[str, ...] = ARGUMENTS) -> str:
    """A lambda with these parameters; a text that only calls a function with them is that function."""
    called, _, arguments = text.partition("(")
    if plain(called).replace(".", "").isidentifier() and arguments == f"{', '.join(names)})":
        return called
    return f"lambda {', '.join(used_names(text, names))}: {text}"


def used_names(text: str, names: tuple[str, ...] = ARGUMENTS) -> list[str]:
    """The names as parameters: those that the text does not use start with an underscore."""
    used = bare_words(text)
    return [name if name in used else f"_{name}" for name in names]


def bare_words(text: str) -> set[str]:
    """The bare names of a piece of Python (not those after a dot)."""
    found: set[str] = set()
    word, after_dot = "", False
    for letter in f"{plain(text)} ":
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        if word and not after_dot:
            found.add(word)
        after_dot = letter == "."
        word = ""
    return found


def strings(names: tuple[str, ...]) -> str:
    """A Python tuple of the texts."""
    return f"({', '.join(map(repr, names))}{',' if len(names) == 1 else ''})"
