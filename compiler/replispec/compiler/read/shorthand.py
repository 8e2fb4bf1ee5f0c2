"""What a machine says once: expressions under `let`, and states under `groups`.

Both are replaced while the machine is read, so checks, documents and generated code never meet them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.compiler.model import expressions as ex
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.read.yaml_source import Tree

PARTS_MAX: Final = 1_000
"""Names, numbers and signs of one expression; the longest of ours has a tenth of them."""
SAME: Final = "same"
"""As `to:` of an edge: every state stays."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_GROUP: Final = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Shorthand:
    """The names under `let` with what they stand for, and the groups of states."""

    lets: Mapping[str, ex.Expression] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def parse(self, text: str, place: Place) -> ex.Expression:
        """The expression, without names under `let`.

        Raises SpecificationError for an unknown one, and for an expression that grows beyond all reading: a
        name that is said twice in the next one doubles with each.
        """
        said = ex.parse(text, place)
        size = 0
        for each in ex.walk(said):
            size += 1
            if isinstance(each, ex.LetName):
                if each.name not in self.lets:
                    known = ", ".join(self.lets) or "none"
                    raise SpecificationError(
                        place, f"nothing is named let.{each.name}", f"known here: {known}"
                    )
                size += sum(1 for _ in ex.walk(self.lets[each.name]))
            if size > PARTS_MAX:
                raise SpecificationError(
                    place,
                    f"with what its names under let stand for, this has more than {PARTS_MAX:,} parts",
                    "use each name once, or make it a variable or a rule",
                )
        return ex.with_lets(said, self.lets)

    def states(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names with groups replaced by their states, each as often as it is said."""
        return tuple(state for name in names for state in self.groups.get(name, (name,)))


def read_shorthand(tree: Tree, states: Iterable[str]) -> Shorthand:
    """The shorthand of a machine with these states.

    A name under `let` may use those before it. Raises SpecificationError for a name that is none, and for
    a group that is named like a state or has a state that is not known.
    """
    found = Shorthand(groups=_groups(tree.tree("groups"), tuple(states)))
    lets = tree.tree("let")
    for name in lets.items:
        place = lets.place_of(name)
        if not _NAME.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name", "use lower case words joined by _")
        found = Shorthand({**found.lets, name: found.parse(lets.text(name), place)}, found.groups)
    return found


def _groups(tree: Tree, states: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found = {}
    for name in tree.items:
        place, members = tree.place_of(name), tree.texts(name)
        if not _GROUP.fullmatch(name) or name in states:
            raise SpecificationError(
                place, f"{name!r} is no name of a group", "use capital words joined by _ that name no state"
            )
        unknown = [each for each in members if each not in states]
        if unknown or not members:
            fault = f"no state is named {unknown[0]!r}" if unknown else f"the group {name} is empty"
            raise SpecificationError(place, fault, f"states: {', '.join(states)}")
        found[name] = members
    return found
