"""What a judge says of a difference, and what it may ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from replispec.compiler.evolution.compare import Difference
from replispec.compiler.evolution.releases import common, text_of
from replispec.compiler.evolution.walk import SpecNode, shown
from replispec.compiler.model.message import VersionRange


class Reach(StrEnum):
    """What a change does to whoever follows the old specification, from the worst on."""

    WIRE = "breaks the wire"
    BEHAVIOUR = "changes behaviour"
    COMPATIBLE = "compatible"
    WORDS = "only words"


class Ruling(NamedTuple):
    """The kind of a change and a sentence that says who is hurt; `releases` where the kind knows better."""

    kind: Reach
    says: str
    releases: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The two trees that are compared."""

    old: SpecNode
    new: SpecNode

    def is_new_release(self, versions: VersionRange | None) -> bool:
        """True when the range holds only releases that the old specification nowhere speaks of."""
        if versions is None or versions.first is None:
            return False
        known = [
            release
            for node in self.old.below()
            for value in node.facts.values()
            if isinstance(value, VersionRange) and value.implementation == versions.implementation
            for release in (value.first, value.last)
            if release is not None
        ]
        return versions.first > max(known, default=())


Judge = Callable[[Difference, Context], Ruling]
Table = Mapping[tuple[str, str], Judge]


def releases_of(node: SpecNode) -> VersionRange | None:
    """The releases in which an object holds, by itself and by what it stands in; None: all."""
    found: VersionRange | None = None
    for each in reversed(list(node.up())):
        versions = each.facts.get("versions")
        if isinstance(versions, VersionRange):
            found = common(found, versions)
    return found


def peer(difference: Difference) -> str:
    """Who is meant by a sentence about the object."""
    versions = releases_of(difference.node)
    return "a peer of any release" if versions is None else f"a peer of {text_of(versions)}"


def listed(difference: Difference) -> tuple[list[str], list[str]]:
    """What a list of names lost and what it gained."""
    before, after = (list(map(shown, each or ())) for each in (difference.before, difference.after))
    return [each for each in before if each not in after], [each for each in after if each not in before]


def words(says: str) -> Judge:
    """A judge for what nobody but a reader sees."""
    return lambda _difference, _context: Ruling(Reach.WORDS, says)


def fixed(kind: Reach, says: str) -> Judge:
    """A judge with one answer; {before}, {after}, {name} and {peer} are filled in."""

    def judge(difference: Difference, _context: Context) -> Ruling:
        return Ruling(kind, filled(says, difference))

    return judge


def filled(says: str, difference: Difference, **more: Any) -> str:
    """The sentence with its places filled."""
    return says.format(
        before=shown(difference.before),
        after=shown(difference.after),
        name=difference.node.name,
        key=difference.key,
        peer=peer(difference),
        **more,
    )
