"""Findings put together by what is behind them, those first that stand on nothing else.

A field that is wrong where nothing else was needed is behind every finding of a case that went on with it:
a controller whose masterEpoch is one too large fails a hundred cases for one reason. Cases that could not be
prepared belong together by the step that failed, others by their symptom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replispec.conformance.results import CaseResult, CaseVerdict

_FIELD = re.compile(r"(?:given|step \d+): (?:header|body|field|replicated)((?:\.[^\s.]+)+) ")
_LABEL = re.compile(r"^(given|step \d+): ")
_SIDES = re.compile(r"(\[\{.*\}\]) instead of .*?(\[\{.*\}\])$")
_PAIR = re.compile(r"(\w+): ([^,}\]]+)")
_WRONG = "{} is not what it should be"
_PLACE = re.compile(r"given \(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Cause:
    """What is behind some findings, in words, and the findings; the first tells the most."""

    says: str
    findings: tuple[CaseResult, ...]


def causes(findings: Iterable[CaseResult]) -> list[Cause]:
    """The findings by cause: the causes that stand on the least first, and so are the findings of each."""
    ordered = sorted(findings, key=_depth)
    wrong = list(dict.fromkeys(field for each in ordered if (field := _root(each))))
    groups: dict[str, list[CaseResult]] = {}
    for each in ordered:
        groups.setdefault(_behind(each, wrong), []).append(each)
    return [Cause(says, tuple(group)) for says, group in groups.items()]


def _depth(result: CaseResult) -> tuple[bool, int]:
    """How much a case stands on: what could not be judged says the least."""
    return result.verdict is not CaseVerdict.FAIL, len(result.built_on)


def _blamed(result: CaseResult) -> str:
    """The field that a symptom is about; empty when it is about something else."""
    found = _FIELD.match(result.symptom)
    if inner := _differing(result.symptom):
        return inner
    names = [name for name in found[1].split(".") if name and not name.isdecimal()] if found else []
    return names[-1] if names else ""


def _differing(symptom: str) -> str:
    """Of lists of mappings that differ in one field, that field; empty when there are more, or none."""
    sides = _SIDES.search(symptom)
    if sides is None:
        return ""
    there = set(_PAIR.findall(sides[1]))
    lacking = {name for name, value in _PAIR.findall(sides[2]) if (name, value) not in there}
    return lacking.pop() if len(lacking) == 1 else ""


def _root(result: CaseResult) -> str:
    """The field that is wrong here though the case went on with no earlier value of it."""
    field = _blamed(result)
    return field if field and field not in result.built_on and result.verdict is CaseVerdict.FAIL else ""


def _behind(result: CaseResult, wrong: Sequence[str]) -> str:
    field = _blamed(result)
    for name in wrong:
        if name == field or name in result.built_on:
            return _WRONG.format(name)
    if field and result.verdict is CaseVerdict.FAIL:
        return _WRONG.format(field)
    place = _PLACE.search(result.reason)
    if result.verdict is CaseVerdict.SKIPPED and place:
        return f"cases cannot be prepared: {place[1]}: {_LABEL.sub('', result.symptom)}"
    return _LABEL.sub("", result.symptom) or result.reason
