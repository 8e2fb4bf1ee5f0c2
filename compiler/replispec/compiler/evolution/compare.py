"""Two trees in, their differences out. What a difference means is not asked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Any, Final

from replispec.compiler.evolution.walk import SpecNode, plain, renamed

ADDED: Final = "added"
REMOVED: Final = "removed"
RENAMED: Final = "renamed"
CHANGED: Final = "changed"
REORDERED: Final = "reordered"
# What says nothing about whether two objects are one under two names.
_WORDS: Final = ("about", "clauses", "module")
# Numbers that stand for an object whatever its name is.
_NUMBERED: Final = {
    "field": ("number", "type"),
    "value": ("number", "versions"),
    "message": ("codes", "kind"),
}
# What is spelt so on the wire, and what others name: whoever says the new name says what the old one said.
_SPELT: Final = ("key", "wire_name", "separator")
_NAMED: Final = ("message", "enum", "own message", "own enum")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: `attribute` of an object `changed` or its list `reordered`, or the whole object.

    `key` is the entry of a mapping among the attributes. Of an object that was added there is no `old`, of
    one that was removed no `new`.
    """

    operation: str
    old: SpecNode | None
    new: SpecNode | None
    attribute: str = ""
    key: str = ""
    before: Any = None
    after: Any = None

    @property
    def node(self) -> SpecNode:
        """The object as it is now, or as it was when it is gone."""
        node = self.new or self.old
        assert node is not None
        return node


def compare(old: SpecNode, new: SpecNode) -> Iterator[Difference]:
    """Every difference between two objects that are one, and between what they hold.

    What is called by the new name of a message or an enum that was only renamed is no difference.
    """
    yield from _compared(old, new, _renames(old, new))


def _renames(old: SpecNode, new: SpecNode) -> dict[str, str]:
    """The new names of messages and enums that were only renamed, by the old ones.

    One that names another renamed one is found once that one is: each round finds at least one of them.
    """
    gone, come = _missing(old, new), _missing(new, old)
    names: dict[str, str] = {}
    while True:
        found = {
            node.name: other.name
            for node in gone
            for other in come
            if node.name not in names and other.name not in names.values() and _is_one(node, other, names)
        }
        if not found:
            return names
        names |= found


def _missing(old: SpecNode, new: SpecNode) -> list[SpecNode]:
    """What others may name, and only the old family has."""
    kept = {node.name for each in new.children.values() for node in each.values() if node.kind in _NAMED}
    every = (node for each in old.children.values() for node in each.values() if node.kind in _NAMED)
    return [node for node in every if node.name not in kept]


def _compared(old: SpecNode, new: SpecNode, names: Mapping[str, str]) -> Iterator[Difference]:
    for attribute in dict.fromkeys((*old.facts, *new.facts)):
        before, after = old.facts.get(attribute), new.facts.get(attribute)
        if plain(before) != plain(after) and not _is_called_anew(attribute, before, after, names):
            name, _, key = attribute.partition(".")
            yield Difference(CHANGED, old, new, name, key, before, after)
    for attribute in dict.fromkeys((*old.children, *new.children)):
        ours, theirs = old.children.get(attribute, {}), new.children.get(attribute, {})
        if attribute in old.lists | new.lists:
            yield from _lists(ours, theirs, names)
        else:
            yield from _named(old, new, attribute, (ours, theirs), names)


def _is_called_anew(attribute: str, before: Any, after: Any, names: Mapping[str, str]) -> bool:
    """Whether a fact says the same of what has another name now; what is on the wire is no name of ours."""
    return attribute not in _SPELT and bool(renamed(before, names) == renamed(after, {}))


def _named(
    old: SpecNode,
    new: SpecNode,
    attribute: str,
    both: tuple[Mapping[str, SpecNode], Mapping[str, SpecNode]],
    names: Mapping[str, str],
) -> Iterator[Difference]:
    before, after = both
    gone = [node for name, node in before.items() if name not in after]
    come = [node for name, node in after.items() if name not in before]
    again: dict[str, SpecNode] = {}
    for node in gone:
        other = next((each for each in come if _is_one(node, each, names)), None)
        if other is None:
            yield Difference(REMOVED, node, None)
            continue
        come.remove(other)
        again[node.name] = other
        yield Difference(RENAMED, node, other, before=node.name, after=other.name)
    for name, node in before.items():
        other = after.get(name) or again.get(name)
        if other is not None:
            yield from _compared(node, other, names)
    yield from (Difference(ADDED, None, node) for node in come)
    left = [again[name].name if name in again else name for name in before]
    kept = [name for name in left if name in after]
    order = [name for name in after if name in set(kept)]
    if kept != order:
        yield Difference(REORDERED, old, new, attribute, before=tuple(kept), after=tuple(order))


def _is_one(old: SpecNode, new: SpecNode, names: Mapping[str, str]) -> bool:
    """True when two objects are one that was renamed."""
    if old.kind != new.kind:
        return False
    numbered = _NUMBERED.get(old.kind, ())
    if numbered and any(old.facts.get(each) for each in numbered):
        return all(old.facts.get(each) == new.facts.get(each) for each in numbered)
    if old.kind in _NAMED:
        names = {**names, old.name: new.name}
    return bool(_content(old, names) == _content(new, {}))


def _content(node: SpecNode, names: Mapping[str, str]) -> Any:
    """What the object says, without its name and words, by the new names of others."""
    facts = {
        name: renamed(value, {} if name in _SPELT else names)
        for name, value in node.facts.items()
        if name not in _WORDS
    }
    said = partial(_content, names=names)
    below = {attribute: list(map(said, each.values())) for attribute, each in node.children.items()}
    return node.kind, facts, below


def _lists(
    before: Mapping[str, SpecNode], after: Mapping[str, SpecNode], names: Mapping[str, str]
) -> Iterator[Difference]:
    """Objects without names: those of one name (the edges of a pair) are aligned by what they say."""
    groups = dict.fromkeys(key.rpartition("#")[0] for key in (*before, *after))
    for group in groups:
        old = [node for key, node in before.items() if key.rpartition("#")[0] == group]
        new = [node for key, node in after.items() if key.rpartition("#")[0] == group]
        yield from _aligned(old, new, names)


def _aligned(
    old: Sequence[SpecNode], new: Sequence[SpecNode], names: Mapping[str, str]
) -> Iterator[Difference]:
    left = [_content(each, names) for each in old]
    right = [_content(each, {}) for each in new]
    if left != right and sorted(map(repr, left)) == sorted(map(repr, right)):
        first = next(at for at, (one, other) in enumerate(zip(left, right, strict=True)) if one != other)
        yield Difference(REORDERED, old[first], new[first], "order")
        return
    # repr, because what a node says need not be hashable.
    matcher = SequenceMatcher(None, list(map(repr, left)), list(map(repr, right)), autojunk=False)
    for _, low, high, start, end in matcher.get_opcodes():
        pairs = list(_partners(old[low:high], new[start:end]))
        for one, other in pairs:
            yield from _compared(one, other, names)
        matched_old = {id(one) for one, _ in pairs}
        matched_new = {id(other) for _, other in pairs}
        yield from (Difference(REMOVED, each, None) for each in old[low:high] if id(each) not in matched_old)
        yield from (Difference(ADDED, None, each) for each in new[start:end] if id(each) not in matched_new)


def _partners(old: Sequence[SpecNode], new: Sequence[SpecNode]) -> Iterator[tuple[SpecNode, SpecNode]]:
    """Which of the new objects stands for which of the old: the one that shares most with it, in order."""
    if len(old) == len(new):
        yield from zip(old, new, strict=True)
        return
    free = list(new)
    for one in old:
        best = max(free, key=lambda other: _shared(one, other), default=None)
        if best is not None and _shared(one, best) * 2 > len(one.facts):
            free.remove(best)
            yield one, best


def _shared(one: SpecNode, other: SpecNode) -> int:
    return sum(one.facts[name] == other.facts.get(name) for name in one.facts)
