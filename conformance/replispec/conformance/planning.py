"""From what a user says to a plan, and from a plan to results: the one place that reads clock and rng."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from replispec.conformance.cases import bases as bases_of
from replispec.conformance.cases import cases_folder, load
from replispec.conformance.expectations import Expected, load_expected
from replispec.conformance.families import family_of
from replispec.conformance.model import Case
from replispec.conformance.run import RunPlan
from replispec.conformance.vocabulary import fits, parse_release, release_text
from replispec.conformance.wires import split_address

EXPECTED = "expected_failures.yaml"


class PlanError(Exception):
    """What the user asked for cannot be done; the text is one line."""


def make_plan(
    kind: str,
    addresses: Mapping[str, str | None],
    *,
    implementation: str = "",
    release: str | None = None,
    profiles: Sequence[str] = (),
    patterns: Sequence[str] = (),
    bases: Sequence[str] = (),
    seed: str | None = None,
    jobs: int = 8,
    patience: float = 1.0,
    known: Mapping[str, str | None] | None = None,
    adapter: Sequence[str] = (),
    strict: bool = False,
) -> RunPlan:
    """A plan with everything filled in that was left out. Raises PlanError."""
    there = {name: value for name, value in addresses.items() if value is not None}
    for value in there.values():
        try:
            split_address(value)
        except ValueError as fault:
            raise PlanError(str(fault)) from None
    family = family_of(kind)
    if ("target" in there) is bool(adapter):
        raise PlanError("say where the subject listens (--target) or what brings it to life (--adapter)")
    if family.kind(kind).played and not adapter:
        raise PlanError(f"each case of kind {kind} has its subject started: --adapter, not --target")
    if lacking := [each for each in family.kind(kind).beside if each not in there]:
        raise PlanError(
            f"kind {kind} is judged beside a {lacking[0]}: say where that listens (--{lacking[0]})"
        )
    known_releases = family.vocabulary.known_releases()
    spoken = known_releases[-1] if release is None else parse_release(release)
    if spoken is None or spoken not in known_releases:
        listed = ", ".join(map(release_text, known_releases))
        raise PlanError(f"{release!r} is no known release of the protocol: there are {listed}")
    there_are = family.kind(kind).profiles
    for profile in profiles:
        if profile not in there_are:
            raise PlanError(f"kind {kind} has no profile {profile!r}: {', '.join(there_are)}")
    for basis in bases:
        if basis not in bases_of(family):
            raise PlanError(f"cases of kind {kind} rest on {', '.join(bases_of(family))}, not on {basis!r}")
    if seed is not None and not seed.isprintable():
        raise PlanError(f"a seed is printable text, not {seed!a}")
    return RunPlan(
        kind=kind,
        addresses=there,
        implementation=implementation,
        release=spoken,
        seed=seed or secrets.token_hex(6),
        suite=version("replispec"),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        now_ms=time.time_ns() // 1_000_000,
        profiles=tuple(profiles),
        patterns=tuple(patterns),
        bases=tuple(dict.fromkeys(bases)),
        jobs=jobs,
        patience=patience,
        known={name: value for name, value in (known or {}).items() if value is not None},
        adapter=tuple(adapter),
        strict=strict,
    )


def cases_for(
    plan: RunPlan, folder: Path | None = None, added: Path | None = None
) -> tuple[tuple[Case, ...], tuple[Expected, ...]]:
    """The cases of the plan's kind, and the failures that are known of its implementation.

    A folder of cases may hold its own `expected_failures.yaml`, as the shipped one does.

    Raises CaseError, and PlanError when a pattern chooses nothing.
    """
    cases = load(plan.kind, folder, added)
    for pattern in plan.patterns:
        if not any(fits(case.id, pattern) for case in cases):
            near = next((each.topic for each in cases if pattern.strip("*/") == each.topic), "")
            hint = f": all of that topic are '*/{near}/*'" if near else ""
            raise PlanError(f"no case of kind {plan.kind} is called {pattern!r}{hint}")
    family = plan.family()
    expected: dict[str, tuple[Expected, ...]] = {}
    for top in (folder or cases_folder(family.name), *([added] if added else [])):
        if (top / EXPECTED).is_file():
            listed = load_expected(top / EXPECTED, family, plan.kind, {case.id for case in cases})
            expected |= {name: (*expected.get(name, ()), *entries) for name, entries in listed.items()}
    return cases, _expected_of(plan.implementation, expected) if expected else ()


def _expected_of(name: str, expected: Mapping[str, tuple[Expected, ...]]) -> tuple[Expected, ...]:
    """The failures that are known of an implementation; NAME-RELEASE is a release that has a list of its own.

    Raises PlanError for an implementation that nothing is known of: a misspelt one would have findings.
    """
    if name and not any(name == each or name.startswith(f"{each}-") for each in expected):
        raise PlanError(f"no implementation {name!r} is listed: there are {', '.join(expected)}")
    return expected.get(name, ())
