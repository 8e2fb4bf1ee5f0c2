"""What a run found, as data that every report is made from."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import orjson

from replispec.conformance.model import Case
from replispec.conformance.trace import Trace, TraceEntry

FORMAT = 1


class CaseVerdict(enum.StrEnum):
    """The outcome of one case."""

    PASS = "pass"
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    SKIPPED = "skipped"
    ERROR = "error"


class Standing(enum.StrEnum):
    """What a verdict means beside the list of expected failures."""

    AS_IT_SHOULD = "as it should"
    EXPECTED = "expected failure"
    UNEXPECTED = "failure"
    UNEXPECTED_PASS = "unexpected pass"
    OTHER_SYMPTOM = "another symptom"
    NOT_JUDGED = "not judged"
    WARNING = "warning"


@dataclass(slots=True)
class CaseResult:
    """One case of a run.

    `trace` holds (s, connection, way, words, bytes in hexadecimal, size); `built_on` names the fields of
    answers that the case went on with.
    """

    id: str
    topic: str
    profile: str
    clause: str
    requirement: str
    severity: str
    basis: str
    bugs: list[str]
    verdict: CaseVerdict
    standing: Standing
    reason: str
    symptom: str
    expected: str
    took_s: float
    trace: list[TraceEntry] = field(default_factory=list)
    trace_left_out: int = 0
    built_on: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, case: Case, verdict: CaseVerdict, reason: str, symptom: str, took_s: float, trace: Trace | None
    ) -> CaseResult:
        """The result of a case before the list of expected failures is looked at."""
        return cls(
            id=case.id,
            topic=case.topic,
            profile=case.profile,
            clause=case.clause,
            requirement=case.requirement,
            severity=case.severity,
            basis=case.basis,
            bugs=list(case.bugs),
            verdict=verdict,
            standing=_standing(case, verdict, symptom),
            reason=reason,
            symptom=symptom,
            expected="",
            took_s=took_s,
            trace=list(trace.entries) if trace else [],
            trace_left_out=trace.left_out if trace else 0,
        )


def _standing(case: Case, verdict: CaseVerdict, symptom: str) -> Standing:
    if verdict is CaseVerdict.FAIL:
        return Standing.WARNING if case.severity == "should" else Standing.UNEXPECTED
    if verdict is CaseVerdict.ERROR or (verdict is CaseVerdict.SKIPPED and symptom):
        return Standing.NOT_JUDGED
    return Standing.AS_IT_SHOULD


@dataclass(slots=True)
class RunResult:
    """One run of the suite against one subject."""

    kind: str
    target: str
    implementation: str
    release: str
    profiles: list[str]
    seed: str
    suite: str
    began: str
    took_s: float
    results: list[CaseResult]
    stale: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was found out before the first case
    cut_short: bool = False
    bases: list[str] = field(default_factory=list)  # what was asked for alone; empty: all
    adapter_fault: str = (
        ""  # what the program did that was to bring the subject to life, against its protocol
    )
    strict: bool = False  # whether failed recommendations count as findings
    format: int = FORMAT

    def counts(self) -> dict[str, int]:
        """How many cases have each verdict."""
        found = Counter(each.verdict.value for each in self.results)
        return {verdict.value: found[verdict.value] for verdict in CaseVerdict}

    def judged(self) -> bool:
        """Whether a case of the core came to a verdict; of any profile, where the run tried none of the core.

        A subject that knows no command, or with which no case can be prepared, has shown nothing.
        """
        tried = [each for each in self.results if each.verdict is not CaseVerdict.SKIPPED or each.symptom]
        core = [each for each in tried if each.profile != "admin"]
        return any(each.verdict in (CaseVerdict.PASS, CaseVerdict.FAIL) for each in core or tried)

    def findings(self, *, strict: bool = False) -> list[CaseResult]:
        """The results that make a run fail; failed recommendations, too, where that is asked."""
        return [each for each in self.results if self.is_finding(each, strict=strict)]

    def is_finding(self, result: CaseResult, *, strict: bool = False) -> bool:
        """Whether a result makes a run fail."""
        return result.standing in (_STRICTLY_BAD if strict or self.strict else _BAD)

    def beside(self) -> list[str]:
        """What is wrong with the run itself, whatever its cases say: a line each, in every report."""
        lines = [
            f"{place}: the entry is stale, its case is not for release {self.release}" for place in self.stale
        ]
        if self.adapter_fault:
            lines.append(f"THE ADAPTER FAILED, not its subject: {self.adapter_fault}")
        if self.cut_short:
            lines.append("INTERRUPTED: only what is counted here was played")
        elif not self.judged() and not self.adapter_fault:
            lines.append("NOTHING WAS JUDGED: no case of the core came to a verdict")
        return lines


def to_json(run: RunResult) -> bytes:
    """The run as JSON, one document, stable in its order."""
    return orjson.dumps(asdict(run), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


_BAD = frozenset((Standing.UNEXPECTED, Standing.UNEXPECTED_PASS, Standing.OTHER_SYMPTOM, Standing.NOT_JUDGED))
_STRICTLY_BAD = _BAD | {Standing.WARNING}


class ResultError(Exception):
    """A file of results cannot be read."""


def from_json(data: bytes, name: str) -> RunResult:
    """A run out of its JSON. Raises ResultError."""
    try:
        document = orjson.loads(data)
        if document["format"] != FORMAT:
            raise ResultError(f"{name}: results of another format ({document['format']})")
        results = [_case_result(each) for each in document.pop("results")]
        return RunResult(results=results, **document)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as fault:
        raise ResultError(f"{name}: no results of this suite: {fault}") from None


def _case_result(values: Mapping[str, object]) -> CaseResult:
    fields = dict(values)
    fields["verdict"] = CaseVerdict(str(fields["verdict"]))
    fields["standing"] = Standing(str(fields["standing"]))
    trace = fields["trace"]
    if not isinstance(trace, list):
        raise TypeError("trace is no list")
    fields["trace"] = [TraceEntry(**each) for each in trace]
    return CaseResult(**fields)  # type: ignore[arg-type]  # the keys are those that to_json wrote


def by_clause(runs: Iterable[RunResult]) -> dict[str, list[tuple[RunResult, CaseResult]]]:
    """The results of all runs under the clauses they judge."""
    found: dict[str, list[tuple[RunResult, CaseResult]]] = {}
    for run in runs:
        for result in run.results:
            found.setdefault(result.clause, []).append((run, result))
    return found


def worst(results: Sequence[CaseResult]) -> CaseVerdict:
    """The verdict that stands for several: a failure first, a pass when nothing worse is there."""
    found = {each.verdict for each in results}
    for verdict in (CaseVerdict.ERROR, CaseVerdict.FAIL, CaseVerdict.PASS, CaseVerdict.UNSUPPORTED):
        if verdict in found:
            return verdict
    return CaseVerdict.SKIPPED
