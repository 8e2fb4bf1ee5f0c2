"""Names of a specification become names of generated Python: what cannot be one is refused.

A word of Python is refused where it is written. What two things would be called is found in the module that
was made of them, whatever it was made of: a class that hides an import changes what the module means.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from replispec.compiler.model.message import Place, SpecificationError


def check_word(name: str, place: Place) -> None:
    """Raises SpecificationError for a word of Python, such as class or from."""
    if keyword.iskeyword(name):
        raise SpecificationError(
            place, f"{name!r} is a word of Python, and no name in generated code", "take another name"
        )


def check_module(text: str, place: Place) -> None:
    """Refuse a specification of which a module was made that names two things alike, or is no Python.

    `place` is where the specification of the module starts.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        found = text.splitlines()[(error.lineno or 1) - 1].strip()
        raise SpecificationError(
            place, f"this becomes {found!r}, which is no Python ({error.msg})", "take other names"
        ) from error
    for name in _twice(_bound(tree)):
        raise SpecificationError(
            place,
            f"{name} would be two things in the code that is made of this",
            f"an event, a message or an effect becomes {name}, beside a name of this kind: rename it",
        )
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for name in _twice(_bound(node)):
                raise SpecificationError(
                    place,
                    f"{name} would be two things of one {node.name} in the code that is made of this",
                    "it is also what such a thing is asked for whatever it is: rename it",
                )


def _twice(names: Iterator[str]) -> Iterator[str]:
    """The names that came before."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _bound(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The names that a module binds at its top, or a class, as often as it does."""
    for node in tree.body:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name for each in names)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (each.id for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
