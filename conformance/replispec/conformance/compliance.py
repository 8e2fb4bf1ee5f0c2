"""docs/compliance.md: what the last runs on all targets found, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from replispec.conformance.causes import causes
from replispec.conformance.coverage import Covered, counted
from replispec.conformance.defects import Defect
from replispec.conformance.expectations import BETWEEN
from replispec.conformance.families import clauses
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing, by_clause

SIGNS = {
    CaseVerdict.PASS: "pass",
    CaseVerdict.FAIL: "**fail**",
    CaseVerdict.UNSUPPORTED: "unsupported",
    CaseVerdict.SKIPPED: "-",
    CaseVerdict.ERROR: "**error**",
}


# Of what a subject said last so much is shown.
SHOWN_BYTES = 160
_AS_TEXT = bytes(byte for byte in range(0x21, 0x7F) if byte not in b"`|\\")


def compliance_page(
    runs: Sequence[RunResult],
    covered: Sequence[Covered],
    defects: Mapping[str, Defect] | None = None,
    not_played: Sequence[tuple[str, str, str]] = (),
) -> str:
    """The Markdown page.

    `runs`: at most one of each kind and target; `defects` by their marks; `not_played`: who is missing, as
    kind, subject and why.
    """
    ordered = sorted(runs, key=lambda run: (run.kind, run.implementation, _numbers(run.release)))
    lines = [
        "<!-- Written by `make conformance` from the last runs on all targets. Do not edit. -->",
        "# Compliance",
        "",
        "What the conformance suite found at real implementations, on nothing but their bytes. A cell counts",
        "the cases of a clause: those that passed, of those that were judged. `-` means that no case of the",
        "clause is for this release or kind. How a case is written: [writing a case](writing-a-case.md).",
        "",
        *_when(ordered),
        *_overview(ordered),
        *_not_played(not_played),
    ]
    for kind in sorted({run.kind for run in ordered}):
        of_kind = [run for run in ordered if run.kind == kind]
        lines += [f"## Clauses: {kind}", "", *_matrix(of_kind)]
    lines += ["## Failures", "", *_failures(ordered, defects or {})]
    if any(_not_judged(run) for run in ordered):
        lines += ["## Cases that were not judged, by cause", "", *_causes(ordered)]
    lines += ["## Clauses without a case", "", *_uncovered(covered)]
    return "\n".join(lines).rstrip() + "\n"


def _when(runs: Sequence[RunResult]) -> Iterator[str]:
    days = sorted({run.began.partition("T")[0] for run in runs if run.began})
    suites = sorted({run.suite for run in runs if run.suite})
    if days and suites:
        last = f" to {days[-1]}" if len(days) > 1 else ""
        yield f"Played {days[0]}{last} by replispec {', '.join(suites)}; each run names its seed."
        yield ""


def label(run: RunResult) -> str:
    """What a run is called in a table."""
    return " ".join(filter(None, (run.implementation or run.target, run.release)))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def _overview(runs: Sequence[RunResult]) -> Iterator[str]:
    heads = ("kind", "subject", "pass", "fail", "of them expected", "unsupported", "skipped", "error")
    yield _row([*heads, "findings", "took", "seed"])
    yield _row(["---"] * (len(heads) + 3))
    for run in runs:
        counts = run.counts()
        known = sum(each.standing is Standing.EXPECTED for each in run.results)
        cells = [run.kind, label(run), counts["pass"], counts["fail"], known]
        cells += [counts["unsupported"], counts["skipped"], counts["error"]]
        cells += [len(run.findings()), f"{run.took_s:.0f} s", run.seed]
        yield _row(cells)
    yield ""


def _not_played(missing: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    if missing:
        yield "These could not be played:"
        yield ""
        yield _row(["kind", "subject", "why"])
        yield _row(["---"] * 3)
        yield from map(_row, sorted(missing))
        yield ""


def _matrix(runs: Sequence[RunResult]) -> Iterator[str]:
    known = clauses()
    yield _row(["clause", *(label(run) for run in runs)])
    yield _row(["---"] * (len(runs) + 1))
    for clause, pairs in sorted(by_clause(runs).items()):
        cells = [_cell([result for run, result in pairs if run is each]) for each in runs]
        if any(cell != "-" for cell in cells):
            yield _row([_linked(known[clause].family, clause) if clause in known else clause, *cells])
    yield ""


def _cell(results: Sequence[CaseResult]) -> str:
    judged = [each for each in results if each.verdict is not CaseVerdict.SKIPPED]
    if not judged:
        return SIGNS[CaseVerdict.SKIPPED]
    passed = sum(each.verdict is CaseVerdict.PASS for each in judged)
    if passed == len(judged):
        return f"{passed}/{passed}"
    if all(each.verdict is CaseVerdict.UNSUPPORTED for each in judged):
        return SIGNS[CaseVerdict.UNSUPPORTED]
    return f"**{passed}/{len(judged)}**"


def _failures(runs: Sequence[RunResult], defects: Mapping[str, Defect]) -> Iterator[str]:
    for run in runs:
        failed = [each for each in run.results if each.verdict in (CaseVerdict.FAIL, CaseVerdict.ERROR)]
        if not failed:
            continue
        yield f"### {run.kind}: {label(run)}"
        yield ""
        yield "| case | paragraph | basis | demands | symptom | known as | why | what came last |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
        for each in failed:
            expected = each.standing is Standing.EXPECTED
            known = ", ".join(_reported(mark, defects) for mark in each.bugs)
            like = f"{each.standing.value}{f', like {known}' if known else ''}"
            cells = [f"`{each.id}`", _paragraph(each), each.basis, each.requirement]
            cells += [each.symptom or each.reason, known or "expected" if expected else like]
            yield _row([*cells, _why(each), _last_bytes(each)])
        yield ""


def _not_judged(run: RunResult) -> list[CaseResult]:
    """The cases that could not be prepared: they count as findings, and say nothing about their clauses."""
    skipped = (each for each in run.results if each.verdict is CaseVerdict.SKIPPED)
    return [each for each in skipped if each.standing is Standing.NOT_JUDGED]


def _causes(runs: Sequence[RunResult]) -> Iterator[str]:
    yield "What one case leaves behind may keep others from being prepared: each row is one cause, not as"
    yield "many faults as it has cases."
    yield ""
    yield _row(["kind", "subject", "cause", "cases", "which"])
    yield _row(["---"] * 5)
    for run in runs:
        for cause in causes(_not_judged(run)):
            names = ", ".join(f"`{each.id}`" for each in cause.findings)
            yield _row([run.kind, label(run), cause.says, len(cause.findings), names])
    yield ""


def _paragraph(result: CaseResult) -> str:
    """Where the demand is written, with the clause that says it."""
    known = clauses().get(result.clause)
    if known is None:
        return result.clause
    clause = known.clause
    return f"{_linked(known.family, clause.id)}: {', '.join(filter(None, (clause.document, clause.section)))}"


def _why(result: CaseResult) -> str:
    """Why it fails so, from the list of expected failures; nothing where the list does not know it."""
    listed = f"{result.symptom} ("
    told = (each for each in result.expected.split(BETWEEN) if each.startswith(listed))
    return next(told, "").removeprefix(listed).removesuffix(")")


def _reported(mark: str, defects: Mapping[str, Defect]) -> str:
    """A known defect with the numbers under which it was reported."""
    upstream = defects[mark].upstream if mark in defects else ()
    return f"{mark} ({', '.join(upstream)})" if upstream else mark


def _last_bytes(result: CaseResult) -> str:
    """The bytes of the subject that came last, as text where they are: its answer, or its request."""
    came = next((each for each in reversed(result.trace) if each.way == "<" and each.data), None)
    if came is None:
        return ""
    data = bytes.fromhex(came.data)[:SHOWN_BYTES]
    text = "".join(chr(byte) if byte in _AS_TEXT else f"\\x{byte:02x}" for byte in data)
    return f"`{text}`{'...' if came.size > SHOWN_BYTES else ''}"


def _uncovered(covered: Sequence[Covered]) -> Iterator[str]:
    counts = counted(covered)
    yield (
        f"{counts['cases']} clauses have cases, {counts['elsewhere']} are checked in another way alone, "
        f"{counts['nothing']} by nothing that runs."
    )
    yield ""
    yield "| clause | what stands for a case |"
    yield "| --- | --- |"
    for each in covered:
        if not each.cases:
            yield _row([_linked(each.family, each.clause.id), each.otherwise])
    yield ""


def _linked(family: str, clause: str) -> str:
    return f"[{clause}](../generated/docs/{family}/clauses.md#{clause.lower()})"


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
