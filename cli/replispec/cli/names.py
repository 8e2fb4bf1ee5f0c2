"""Every name that can be explained, with where it is from: the specification, the suite, the command line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Final

import orjson

_RELEASE: Final = re.compile(r"(?:release |v|[a-z][a-z0-9-]*[@-])?(\d+(?:\.\d+)+)")
_PASTED: Final = re.compile(r"(.*) \(([a-z0-9]+)\)")
_CODES: Final = frozenset(("value", "message"))
"""What `code` means before a number."""
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
        """Everything that may be typed for it: the id, its last part, other names, also after its holder."""
        holder, _, last = self.id.rpartition(".")
        yield self.id
        yield last or self.id
        yield from self.also
        if holder and last:
            yield from (f"{holder}.{each}" for each in self.also)


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
    """Finds names by what people type: in any case, joined by -, _, capitals or spaces, with family or kind
    before it, and as `shown` says it. `releases` are those that the specification speaks of."""

    def __init__(self, names: Iterable[Name], releases: Iterable[str] = ()) -> None:
        self.names = list(names)
        self._releases = frozenset(releases)
        self._families = {name.family for name in self.names} - {""}
        self._kinds = {_folded(name.kind): frozenset((name.kind,)) for name in self.names} | {"code": _CODES}
        self._by: defaultdict[str, list[Name]] = defaultdict(list)
        self._joined: defaultdict[str, list[Name]] = defaultdict(list)
        self._spelled: dict[str, str] = {}
        for name in self.names:
            spellings = [*name.spellings()]
            for spelling in dict.fromkeys(map(_folded, spellings)):
                self._by[spelling].append(name)
            for spelling in dict.fromkeys(map(_joined, spellings)):
                self._joined[spelling].append(name)
            for spelling in spellings:
                self._spelled.setdefault(_folded(spelling), spelling)

    def find(self, words: str) -> list[Name]:
        """All that bear the name; those whose whole id it is come alone."""
        wanted = words.strip(" \t\"'`:,;")
        for by, key in ((self._by, _folded), (self._joined, _joined)):
            for name, families, kinds in self._readings(wanted):
                found = [
                    each
                    for each in by.get(key(name), ())
                    if each.family in families and (not kinds or each.kind in kinds)
                ]
                if found:
                    whole = [each for each in found if name == each.id]
                    return whole or found
        return []

    def _readings(self, words: str) -> Iterator[tuple[str, Collection[str], Collection[str]]]:
        """A name in what was typed, with the families and the kinds that it may be of; none: any kind."""
        everywhere = {"", *self._families}
        pasted = _PASTED.fullmatch(words)
        if pasted is not None and pasted[2] in self._families:
            words, everywhere = pasted[1], {pasted[2]}
        families: list[tuple[str, Collection[str]]] = [(words, everywhere)]
        for separator in " .":
            first, _, rest = words.partition(separator)
            if rest and first.lower() in self._families:
                families.append((rest, {first.lower()}))
        for text, held in families:
            number = _number(text)
            yield (text if number is None else number), held, ()
            for at in range(text.count(" "), 0, -1):
                kind, rest = _divided(text, at)
                if _folded(kind) in self._kinds:
                    yield _number(rest) or rest, held, self._kinds[_folded(kind)]

    def near(self, words: str) -> list[str]:
        """A few names that may have been meant."""
        wanted = _folded(words)
        inside = sorted((each for each in self._by if wanted in each), key=len) if len(wanted) > 1 else []
        close = get_close_matches(wanted, self._by, n=_NEAR_MAX, cutoff=0.7)
        return list(dict.fromkeys(self._spelled[each] for each in (*close, *inside)))[:_NEAR_MAX]

    def of_release(self, words: str) -> tuple[str, list[Name], list[Name]] | None:
        """A release with what begins and what ends with it; None when the words are no release."""
        match = _RELEASE.fullmatch(words.strip().rstrip(".").lower())
        if match is None:
            return None
        begins, ends = [], []
        for name in self.names:
            for text in _ranges(name):
                first, _, last = text.partition("@")[2].partition("..")
                begins += [name] if first == match[1] else []
                ends += [name] if last == match[1] else []
        return (match[1], begins, ends) if begins or ends or match[1] in self._releases else None


def _ranges(name: Name) -> Iterator[str]:
    """The ranges of releases that an object speaks of."""
    for key, value in name.entry.get("says", {}).items():
        if key in ("versions", "releases"):
            yield value
        elif key.startswith("divergence."):
            yield key.partition(".")[2]


def _folded(text: str) -> str:
    return " ".join(text.replace("_", "-").lower().split())


def _joined(text: str) -> str:
    """Letters and digits alone: however the words of a name are put together, they are the same."""
    return re.sub(r"[\W_]+", "", text.lower())


def _number(text: str) -> str | None:
    """A number as reports print it, of one that was typed in hexadecimal."""
    return str(int(text, 16)) if re.fullmatch(r"0[xX][0-9a-fA-F]+", text) else None


def _divided(text: str, words: int) -> tuple[str, str]:
    """So many words, and the rest."""
    parts = text.split(" ")
    return " ".join(parts[:words]), " ".join(parts[words:])
