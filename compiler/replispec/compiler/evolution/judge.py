"""A difference in, its kind and a sentence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from replispec.compiler.evolution.behaviour import BEHAVIOUR
from replispec.compiler.evolution.compare import CHANGED, RENAMED, REORDERED, Difference, compare
from replispec.compiler.evolution.releases import text_of
from replispec.compiler.evolution.systems import is_of_a_system, of_system
from replispec.compiler.evolution.verdict import Context, Reach, Ruling, Table, releases_of, words
from replispec.compiler.evolution.walk import SpecNode, shown
from replispec.compiler.evolution.wire import WIRE

ORDER: Final = tuple(Reach)
_EVERYWHERE: Final = {
    "about": words("nothing but the words has changed"),
    "clauses": words("another clause is cited; what is done is the same"),
}
_OTHERWISE: Final = "whoever follows the old specification does otherwise"
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
    kind: Reach
    says: str
    releases: str
    place: str
    difference: Difference
    others: tuple[str, ...] = ()


def changes(old: SpecNode, new: SpecNode) -> list[Change]:
    """Every change between two trees of one family, the worst first, each line of the source once."""
    context = Context(old, new)
    found: dict[tuple[object, ...], Change] = {}
    every = list(compare(old, new))
    for difference in every:
        if _follows(difference, every):
            continue
        change = _change(difference, judged(difference, context), new.name)
        key = (change.what, change.before, change.after, change.place, change.kind, difference.node.kind)
        first = found.setdefault(key, change)
        if first is not change and change.id != first.id and change.id not in first.others:
            found[key] = replace(first, others=(*first.others, change.id))
        elif first is not change and change.id == first.id:
            found[(*key, len(found))] = change
    return sorted(found.values(), key=lambda change: ORDER.index(change.kind))


def judged(difference: Difference, context: Context) -> Ruling:
    """The verdict on one difference. What no table knows changes behaviour: nobody knows what it decides."""
    what = _what(difference)
    if is_of_a_system(difference) and what not in _EVERYWHERE:
        return of_system(difference, what, context)
    judge = TABLE.get((difference.node.kind, what)) or _EVERYWHERE.get(what)
    if judge is not None:
        return judge(difference, context)
    return Ruling(Reach.BEHAVIOUR, _unknown(difference))


def _follows(difference: Difference, every: Sequence[Difference]) -> bool:
    """True for what the compiler derives from something else that has changed, and that is judged itself."""
    old, new = difference.old, difference.new
    if difference.operation != CHANGED or old is None or new is None:
        return False
    match old.kind, difference.attribute:
        case "field", "is_message" | "is_enum":
            return bool(old.facts.get("type") != new.facts.get("type"))
        case "field", "passes":
            return any(each.node.kind == "given number" or each.attribute == "type" for each in every)
        case "machine", "answers":
            return any(each.node.kind == "answer" for each in every)
        case "edge", "sources":
            return True
        case "event", "fields":
            read = {*old.facts.get("messages", ()), *new.facts.get("messages", ())}
            is_other = old.facts.get("messages") != new.facts.get("messages")
            return bool(read) and (is_other or any(_message(each) in read for each in every))
    return False


def _message(difference: Difference) -> str:
    return next((each.name for each in difference.node.up() if each.kind == "message"), "")


def _what(difference: Difference) -> str:
    if difference.operation == CHANGED:
        return difference.attribute
    if difference.operation == REORDERED:
        return f"reordered {difference.attribute}"
    return difference.operation


def _unknown(difference: Difference) -> str:
    if difference.operation == CHANGED:
        return f"{shown(difference.before)} becomes {shown(difference.after)}; {_OTHERWISE}"
    return f"{difference.node.kind} {difference.node.name} {difference.operation}; {_OTHERWISE}"


def _change(difference: Difference, verdict: Ruling, family: str) -> Change:
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
