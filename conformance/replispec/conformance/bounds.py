"""What a case file may say where only some numbers or releases make sense: all else is refused."""

from __future__ import annotations

from replispec.conformance.model import CaseError
from replispec.conformance.sources import Item
from replispec.conformance.vocabulary import Vocabulary, release_text
from replispec.runtime.primitives.releases import Releases


def counted(item: Item | None, bounds: tuple[int, int]) -> object:
    """A whole number within these bounds, or a variable that is one when it is sent. Raises CaseError."""
    if item is None:
        return None
    if isinstance(item.value, str) and item.value.startswith("$") and not item.tag:
        return item.value
    number = item.value
    if isinstance(number, bool) or not isinstance(number, int) or not bounds[0] <= number <= bounds[1]:
        raise CaseError(
            item.place,
            f"a whole number from {bounds[0]} to {bounds[1]} is expected, or $name, not {item.plain()!r}",
        )
    return number


def known_releases(item: Item, names: Vocabulary) -> Releases:
    """A range of releases that the specification knows. Raises CaseError."""
    said = item.value if isinstance(item.value, str) and not item.tag else ""
    found = names.releases_of(said)
    if found is None:
        raise CaseError(item.place, "releases are FIRST..LAST, one of them may be left out: 5.1.1..")
    there_are = names.known_releases()
    listed_words = ", ".join(map(release_text, there_are))
    for each in (found.first, found.last):
        if each is not None and each not in there_are:
            raise CaseError(item.place, f"{release_text(each)} is no known release: there are {listed_words}")
    if not any(names.holds(found, each) for each in there_are):
        raise CaseError(item.place, f"no release lies in {said}: there are {listed_words}")
    return found
