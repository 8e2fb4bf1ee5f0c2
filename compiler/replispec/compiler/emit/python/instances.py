"""Expressions over the instances of a system in emitted Python: what each name is where it stands.

A name is an instance that an act or an effect has (`self`, `to`, what `each` names), one that `for` takes
from a party, or a party of one. What is read is found in the tree, never in finished text: the same name may
be two things in two places.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from replispec.compiler.emit.python.expressions import HELPERS, bare_words, enum_refs
from replispec.compiler.emit.python.tree import PRIMITIVES, Names, Ref
from replispec.compiler.language.text import to_python
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.message import Model
from replispec.compiler.model.system import PartySpec, SystemSpec

ME: Final = "self"
TO: Final = "to"
"""Who is told, where an effect asks or tells somebody."""
PEER: Final = "peer"
"""Whose connection it is, where a machine is one for each."""
WORLD: Final = "world"
EACH: Final = "each"
OTHERS: Final = ("event", "local", "rules", EACH)
"""What a function of a system reads beside instances."""
_NOT: Final = {"is": "is not", "in": "not in"}
_BOUND: Final = Names(f"{PRIMITIVES}.bindings")
_HELPERS: Final = {
    **HELPERS,
    "as_set": str(_BOUND.as_set),
    "entry_of": str(_BOUND.entry_of),
    "first": str(_BOUND.first_of),
}


@dataclass(frozen=True, slots=True)
class Instances:
    """The instances that an expression may name, with their parties: those it is `given`, and those that are
    `bound` by the `for` in which it stands; `told` are names of what a role is asked about."""

    system: SystemSpec
    model: Model
    given: Mapping[str, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()

    def with_given(self, given: Mapping[str, str]) -> Instances:
        """The same where these instances are given, too."""
        return replace(self, given={**self.given, **given})

    def python(self, node: ex.Expression) -> str:
        """The expression as Python."""
        return to_python(
            node,
            enum_refs(self.model),
            helpers=_HELPERS,
            all_known=True,
            plain={each: each for each in (EACH, *self.told)},
            named=dict(self._named(node)),
            keywords=self.model.keywords,
        )

    def names_in(self, text: str) -> dict[str, str]:
        """What a function of this text is given: its name in the system -> that of the parameter."""
        words = bare_words(text)
        names = {each: each for each in (WORLD, *OTHERS, *self.told)}
        names |= {each: self._word(each) for each in self.given}
        return {name: word for name, word in sorted(names.items()) if word in words}

    def parties_of(self, node: ex.Expression) -> set[str]:
        """The parties of which it reads more than numbers of instances, and not only of those it is given."""
        found = set()
        for each, here in self.walk(node):
            if isinstance(each, ex.PartName) and each.names[1:] != ("number",):
                name = each.names[0]
                if name in here.bound or name not in here.given:
                    found.add(here.party_of(name).name)
        return found

    def reads_given(self, node: ex.Expression, name: str) -> bool:
        """Whether it reads more than the number of an instance that it is given."""
        return any(
            isinstance(each, ex.PartName)
            and each.names[0] == name
            and each.names[1:] != ("number",)
            and name not in here.bound
            for each, here in self.walk(node)
        )

    def walk(self, node: ex.Expression) -> Iterator[tuple[ex.Expression, Instances]]:
        """Every node with the instances where it stands."""
        yield node, self
        inner = self._within(node) if isinstance(node, ex.ForEach) else self
        for _, _, child in ex.children(node):
            yield from inner.walk(child)

    def _within(self, node: ex.ForEach) -> Instances:
        return replace(self, bound={**self.bound, node.name: node.party})

    def _named(self, node: ex.Expression) -> Iterator[tuple[ex.Expression, str]]:
        """The Python of what systems alone can say, wherever it stands in an expression."""
        if isinstance(node, ex.PartName):
            yield node, self._part_name(node)
        elif isinstance(node, ex.Not) and isinstance(node.part, ex.PartName) and self._asks(node.part):
            asks = self._asks(node.part)
            yield node, self._part_name(node.part).replace(f" {asks} ", f" {_NOT[asks]} ")
        elif isinstance(node, ex.ForEach):
            yield node, self._for_each(node)
        else:
            for _, _, child in ex.children(node):
                yield from self._named(child)

    def _for_each(self, node: ex.ForEach) -> str:
        inner = self._within(node)
        only = f" if {inner.python(node.condition)}" if node.condition is not None else ""
        word = {"set": "frozenset", "list": "tuple"}.get(node.word, node.word)
        name = self._word(node.name)
        return f"{word}({inner.python(node.of)} for {name} in {WORLD}.{node.party}{only})"

    def _part_name(self, node: ex.PartName) -> str:
        name, *rest = node.names
        text = f"{self._instance(name)}.{rest[0]}"
        if len(rest) == 1:
            return text
        part = self.party_of(name).parts[rest[0]]
        if node.peer:
            text += f"[{self._instance(node.peer)}.number - 1]"
        if rest[1] in part.machine.states:
            machine = Ref(f"replispec.wire.{self.model.family}.machines", part.machine.name)
            return f"({text}.state is {machine}.State.{rest[1]})"
        if part.is_timer(rest[1]):
            return f'("{rest[0]}.{rest[1]}" in {self._instance(name)}.armed)'
        return f"{text}.variables.{rest[1]}"

    def _asks(self, node: ex.PartName) -> str:
        """The word by which it asks for the state of a machine, or for a timer; none for anything else."""
        match node.names:
            case (name, part, asked):
                one = self.party_of(name).parts[part]
                return "is" if asked in one.machine.states else "in" if one.is_timer(asked) else ""
        return ""

    def _instance(self, name: str) -> str:
        is_named = name in self.bound or name in self.given
        return self._word(name) if is_named else f"{WORLD}.{name}[0]"

    def party_of(self, name: str) -> PartySpec:
        """The party of an instance that may be named."""
        return self.system.parties[self.bound.get(name) or self.given.get(name) or name]

    def _word(self, name: str) -> str:
        """A name of an instance in Python, where it must hide nothing that an expression may read."""
        modules = {
            each.machine.name for party in self.system.parties.values() for each in party.parts.values()
        }
        taken = {*modules, WORLD, *OTHERS, "codes", "constants", "rules", *vars(builtins), *_helper_names()}
        is_own = name in (ME, TO) and name in self.given and name not in self.bound
        return name if is_own or name not in taken | {ME, TO} else f"{name}_"


def _helper_names() -> frozenset[str]:
    return frozenset(name for text in _HELPERS.values() for name in bare_words(text))
