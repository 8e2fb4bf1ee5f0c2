"""Every name that can be explained, with where it is from: the specification, the suite, the command line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Final

import orjson

_RELEASE: Final = re.compile(r"(?:[a-z][a-z0-9-]*@)?(\d+(?:\.\d+)+)")
_NEAR_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Name:
    """One thing with a name. `about` is a sentence, `more` are further lines, `also` are its other names.

    Of an object of the specification `entry` is what the compiler wrote of it (generated names.json).
    """

    kind: str
    id: str
    about: str
    family: str = ""
    also: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    entry: dict[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Kind and name, as one line names them."""
        return f"{self.kind} {self.id}" + (f" ({self.family})" if self.family else "")

    def spellings(self) -> Iterator[str]:
        """Everything that may be typed for it: the id, its last part, other names."""
        yield self.id
        yield self.id.rpartition(".")[2]
        yield from self.also


def specified() -> list[Name]:
    """The names of the specification that was compiled into this installation."""
    entries = orjson.loads(files("replispec.wire").joinpath("names.json").read_bytes())
    return [
        Name(
            entry["kind"],
            entry["id"],
            entry.get("about", ""),
            entry["family"],
            tuple(entry.get("also", ())),
            (),
            entry,
        )
        for entry in entries
    ]


class Index:
    """Finds names by what people type: in any case, with - for _, the family or the kind before it."""

    def __init__(self, names: Iterable[Name]) -> None:
        self.names = list(names)
        self._by: defaultdict[str, list[Name]] = defaultdict(list)
        for name in self.names:
            for spelling in dict.fromkeys(map(_folded, name.spellings())):
                self._by[spelling].append(name)

    def find(self, words: str) -> list[Name]:
        """All that bear the name; those whose whole id it is come alone."""
        wanted = _folded(words)
        found = self._by.get(wanted, [])
        if not found:
            first, _, rest = wanted.partition(" ")
            found = [each for each in self._by.get(rest, []) if first in (each.family, _folded(each.kind))]
            found = found or self._after_kind(wanted)
        whole = [each for each in found if words.rpartition(" ")[2] == each.id]
        return whole or found

    def _after_kind(self, wanted: str) -> list[Name]:
        """A kind of several words before the name, as in `own message note`."""
        return [
            each
            for name in {*wanted.split()[-1:]}
            for each in self._by.get(name, [])
            if wanted == f"{_folded(each.kind)} {name}"
        ]

    def near(self, words: str) -> list[str]:
        """A few names that may have been meant."""
        wanted = _folded(words)
        known = {spelling: each[0].id for spelling, each in self._by.items()}
        inside = sorted((each for each in known if wanted in each), key=len) if len(wanted) > 1 else []
        close = get_close_matches(wanted, known, n=_NEAR_MAX, cutoff=0.7)
        shown = [
            spelling if known[spelling].lower() != spelling else known[spelling]
            for spelling in (*close, *inside)
        ]
        return list(dict.fromkeys(shown))[:_NEAR_MAX]

    def of_release(self, words: str) -> tuple[str, list[Name], list[Name]] | None:
        """A release with what begins and what ends with it; None when the words are no release."""
        match = _RELEASE.fullmatch(words.strip().rstrip("."))
        if match is None:
            return None
        begins, ends = [], []
        for name in self.names:
            for text in _ranges(name):
                first, _, last = text.partition("@")[2].partition("..")
                begins += [name] if first == match[1] else []
                ends += [name] if last == match[1] else []
        return (match[1], begins, ends) if begins or ends else None


def _ranges(name: Name) -> Iterator[str]:
    """The ranges of releases that an object speaks of."""
    for key, value in name.entry.get("says", {}).items():
        if key in ("versions", "releases"):
            yield value
        elif key.startswith("divergence."):
            yield key.partition(".")[2]


def _folded(text: str) -> str:
    return " ".join(text.replace("_", "-").lower().split())
