"""A difference in, its kind and a sentence out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from replispec.compiler.evolution.behaviour import BEHAVIOUR
from replispec.compiler.evolution.compare import CHANGED, REORDERED, RENAMED, Difference, compare
from replispec.compiler.evolution.releases import EVERY_RELEASE, text_of
from replispec.compiler.evolution.verdict import Context, Kind, Table, Verdict, releases_of, words
from replispec.compiler.evolution.walk import Node, shown
from replispec.compiler.evolution.wire import WIRE

ORDER: Final = tuple(Kind)
_EVERYWHERE: Final = {
    "about": words("nothing but the words has changed"),
    "clauses": words("another clause is cited; what is done is the same"),
}
TABLE: Final[Table] = {**WIRE, **BEHAVIOUR}


@dataclass(frozen=True, slots=True)
class Change:
    """One judged difference of a family.

    `id` names the object, as FAMILY NAME; `others` are objects of the same line of the source with the same
    change. `before` and `after` are texts, empty when the whole object came or went.
    """

    id: str
    object: str
    what: str
    before: str
    after: str
    kind: Kind
    says: str
    releases: str
    place: str
    difference: Difference
    others: tuple[str, ...] = ()


def changes(old: Node, new: Node) -> list[Change]:
    """Every change between two trees of one family, the worst first, each line of the source once."""
    context = Context(old, new)
    found: dict[tuple[object, ...], Change] = {}
    for difference in compare(old, new):
        change = _change(difference, judged(difference, context), new.name)
        key = (change.what, change.before, change.after, change.place, change.kind, difference.node.kind)
        first = found.setdefault(key, change)
        if first is not change and change.id != first.id and change.id not in first.others:
            found[key] = replace(first, others=(*first.others, change.id))
        elif first is not change and change.id == first.id:
            found[(*key, len(found))] = change
    return sorted(found.values(), key=lambda change: ORDER.index(change.kind))


def judged(difference: Difference, context: Context) -> Verdict:
    """The verdict on one difference; what no table knows changes behaviour, as nobody knows what it decides."""
    what = _what(difference)
    judge = TABLE.get((difference.node.kind, what)) or _EVERYWHERE.get(what)
    if judge is not None:
        return judge(difference, context)
    return Verdict(Kind.BEHAVIOUR, _unknown(difference))


def _what(difference: Difference) -> str:
    if difference.operation == CHANGED:
        return difference.attribute
    if difference.operation == REORDERED:
        return f"reordered {difference.attribute}"
    return difference.operation


def _unknown(difference: Difference) -> str:
    if difference.operation == CHANGED:
        return f"{shown(difference.before)} becomes {shown(difference.after)}; whoever follows the old one does otherwise"
    return f"{difference.node.kind} {difference.node.name} {difference.operation}; whoever follows the old one does otherwise"


def _change(difference: Difference, verdict: Verdict, family: str) -> Change:
    node = difference.node
    is_whole = difference.operation not in (CHANGED, REORDERED, RENAMED)
    before, after = ("", "") if is_whole else (shown(difference.before), shown(difference.after))
    what = _what(difference) + (f" {difference.key}" if difference.key else "")
    if difference.operation == CHANGED:
        what = what.replace("_", " ") if not difference.key else what
    releases = verdict.releases or text_of(releases_of(node))
    old = difference.old
    name = old.id if old is not None else node.id
    return Change(
        f"{family} {name}",
        node.kind,
        what,
        before,
        after,
        verdict.kind,
        verdict.says,
        releases,
        str(node.place),
        difference,
    )


def breaking(found: list[Change]) -> Iterator[Change]:
    """The changes that break the wire."""
    return (change for change in found if change.kind is Kind.WIRE)


__all__ = ["EVERY_RELEASE", "Change", "breaking", "changes", "judged"]
