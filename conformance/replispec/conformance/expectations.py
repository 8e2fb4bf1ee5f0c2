"""Failures that are known of releases of an implementation, each with its symptom and its reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from replispec.conformance.bounds import known_releases
from replispec.conformance.family import Family
from replispec.conformance.model import CaseError, CasePlace
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing
from replispec.conformance.sources import Item, read
from replispec.conformance.steps import only, text, truth
from replispec.conformance.vocabulary import Release, Vocabulary
from replispec.runtime.primitives.releases import Releases

# Between the entries that one case has, where a result names them.
BETWEEN = " | "
_KEYS = ("case", "releases", "symptom", "why", "bug", "sometimes")


@dataclass(frozen=True, slots=True)
class Expected:
    """A case that is known to fail in these releases, how it fails (* stands for any text), and why that is
    so; `sometimes`: a race, which the case does not always lose."""

    place: CasePlace
    case: str
    releases: Releases
    symptom: str
    why: str
    bug: str = ""
    sometimes: bool = False

    def is_symptom(self, symptom: str) -> bool:
        """Whether a case failed as it is known to."""
        return re.fullmatch(".*".join(map(re.escape, self.symptom.split("*"))), symptom) is not None


def load_expected(
    path: Path, family: Family, kind: str, cases: Collection[str]
) -> dict[str, tuple[Expected, ...]]:
    """The entries of a kind, by implementation. `cases`: ids that exist; an entry for another is a fault.

    Raises CaseError for what does not fit the form.
    """
    item = read(path, path.name)
    only(item, ("implementations",))
    parts = item.mapping("the list")
    if "implementations" not in parts:
        raise CaseError(item.place, "the list needs `implementations`")
    known = {each.name for each in family.kinds}
    found: dict[str, tuple[Expected, ...]] = {}
    for name, entries in parts["implementations"].mapping("implementations").items():
        listed = [_entry(each, family.vocabulary) for each in entries.sequence(name)]
        found[name] = tuple(entry for entry in listed if entry.case.startswith(f"{kind}/"))
        for entry in listed:
            if entry.case.partition("/")[0] not in known or (
                entry in found[name] and entry.case not in cases
            ):
                raise CaseError(entry.place, f"no case {entry.case!r} exists: the entry is stale")
    return found


def _entry(item: Item, vocabulary: Vocabulary) -> Expected:
    only(item, _KEYS)
    parts = item.mapping("an expected failure")
    for name in ("case", "releases", "symptom", "why"):
        if name not in parts:
            raise CaseError(item.place, f"an expected failure needs `{name}`")
    return Expected(
        place=item.place,
        case=text(parts["case"]),
        releases=known_releases(parts["releases"], vocabulary),
        symptom=text(parts["symptom"]),
        why=" ".join(text(parts["why"]).split()),
        bug=text(parts["bug"]) if "bug" in parts else "",
        sometimes=truth(parts.get("sometimes")),
    )


def apply(run: RunResult, expected: Sequence[Expected], vocabulary: Vocabulary, release: Release) -> None:
    """Mark the results that the list knows, and the entries that this run shows to be stale.

    An entry is stale when its case does not apply to the release it names.
    """
    known: dict[str, list[Expected]] = {}
    for entry in expected:
        if vocabulary.holds(entry.releases, release):
            known.setdefault(entry.case, []).append(entry)
    for result in run.results:
        entries = known.get(result.id)
        if entries:
            _mark(result, entries)
            if result.verdict is CaseVerdict.SKIPPED and result.standing is Standing.AS_IT_SHOULD:
                run.stale += [str(entry.place) for entry in entries if result.reason.startswith("release")]


def _mark(result: CaseResult, entries: Sequence[Expected]) -> None:
    result.expected = BETWEEN.join(f"{entry.symptom} ({entry.why})" for entry in entries)
    if result.verdict is CaseVerdict.FAIL:
        known = any(entry.is_symptom(result.symptom) for entry in entries)
        result.standing = Standing.EXPECTED if known else Standing.OTHER_SYMPTOM
    elif result.verdict is CaseVerdict.PASS and not all(entry.sometimes for entry in entries):
        result.standing = Standing.UNEXPECTED_PASS
