"""Results as tests of reports need them, without a subject."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing
from replispec.conformance.trace import TraceEntry


def a_result(name: str, verdict: CaseVerdict, changes: Mapping[str, object] | None = None) -> CaseResult:
    """The result of one case: `controller/alter/RIP44-ALTER-1/1`."""
    _, topic, clause, _ = name.split("/")
    standing = Standing.UNEXPECTED if verdict is CaseVerdict.FAIL else Standing.AS_IT_SHOULD
    values: dict[str, object] = {
        "id": name,
        "topic": topic,
        "profile": "core",
        "clause": clause,
        "requirement": "Something holds.",
        "severity": "must",
        "basis": "both",
        "bugs": [],
        "verdict": verdict,
        "standing": standing,
        "reason": "",
        "symptom": "",
        "expected": "",
        "took_s": 0.25,
        "trace": [TraceEntry(0.001, "main", ">", "ASKED", "00ff", 2)],
        **(changes or {}),
    }
    return CaseResult(**values)  # type: ignore[arg-type]  # the fields of a result, some changed by a test


def a_run(*results: CaseResult, implementation: str = "apache", release: str = "5.4.0") -> RunResult:
    """A run with these results."""
    return RunResult(
        kind="controller",
        target="127.0.0.1:9878",
        implementation=implementation,
        release=release,
        profiles=["core", "admin"],
        seed="a seed",
        suite="0.1",
        began="2026-01-01T00:00:00+00:00",
        took_s=1.5,
        results=list(results),
    )
