"""Two trees in, their differences out. What a difference means is not asked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from replispec.compiler.evolution.walk import SpecNode, plain

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
    """Every difference between two objects that are one, and between what they hold."""
    for attribute in dict.fromkeys((*old.facts, *new.facts)):
        before, after = old.facts.get(attribute), new.facts.get(attribute)
        if plain(before) != plain(after):
            name, _, key = attribute.partition(".")
            yield Difference(CHANGED, old, new, name, key, before, after)
    for attribute in dict.fromkeys((*old.children, *new.children)):
        ours, theirs = old.children.get(attribute, {}), new.children.get(attribute, {})
        if attribute in old.lists | new.lists:
            yield from _lists(ours, theirs)
        else:
            yield from _named(old, new, attribute, ours, theirs)


def _named(
    old: SpecNode,
    new: SpecNode,
    attribute: str,
    before: Mapping[str, SpecNode],
    after: Mapping[str, SpecNode],
) -> Iterator[Difference]:
    gone = [node for name, node in before.items() if name not in after]
    come = [node for name, node in after.items() if name not in before]
    renamed: dict[str, SpecNode] = {}
    for node in gone:
        other = next((each for each in come if _is_one(node, each)), None)
        if other is None:
            yield Difference(REMOVED, node, None)
            continue
        come.remove(other)
        renamed[node.name] = other
        yield Difference(RENAMED, node, other, before=node.name, after=other.name)
    for name, node in before.items():
        other = after.get(name) or renamed.get(name)
        if other is not None:
            yield from compare(node, other)
    yield from (Difference(ADDED, None, node) for node in come)
    left = [renamed[name].name if name in renamed else name for name in before]
    kept = [name for name in left if name in after]
    order = [name for name in after if name in set(kept)]
    if kept != order:
        yield Difference(REORDERED, old, new, attribute, before=tuple(kept), after=tuple(order))


def _is_one(old: SpecNode, new: SpecNode) -> bool:
    """True when two objects are one that was renamed."""
    numbered = _NUMBERED.get(old.kind, ())
    if numbered and any(old.facts.get(each) for each in numbered):
        return all(old.facts.get(each) == new.facts.get(each) for each in numbered)
    return bool(_content(old) == _content(new))


def _content(node: SpecNode) -> Any:
    """What the object says, without its name and words."""
    facts = {name: plain(value) for name, value in node.facts.items() if name not in _WORDS}
    below = {attribute: list(map(_content, each.values())) for attribute, each in node.children.items()}
    return node.kind, facts, below


def _lists(before: Mapping[str, SpecNode], after: Mapping[str, SpecNode]) -> Iterator[Difference]:
    """Objects without names: those of one name (the edges of a pair) are aligned by what they say."""
    groups = dict.fromkeys(key.rpartition("#")[0] for key in (*before, *after))
    for group in groups:
        old = [node for key, node in before.items() if key.rpartition("#")[0] == group]
        new = [node for key, node in after.items() if key.rpartition("#")[0] == group]
        yield from _aligned(old, new)


def _aligned(old: Sequence[SpecNode], new: Sequence[SpecNode]) -> Iterator[Difference]:
    left, right = list(map(_content, old)), list(map(_content, new))
    if left != right and sorted(map(repr, left)) == sorted(map(repr, right)):
        first = next(at for at, (one, other) in enumerate(zip(left, right, strict=True)) if one != other)
        yield Difference(REORDERED, old[first], new[first], "order")
        return
    # repr, because what a node says need not be hashable.
    matcher = SequenceMatcher(None, list(map(repr, left)), list(map(repr, right)), autojunk=False)
    for _, low, high, start, end in matcher.get_opcodes():
        pairs = list(_partners(old[low:high], new[start:end]))
        for one, other in pairs:
            yield from compare(one, other)
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
