"""docs/compliance.md: what the last runs on all targets found, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from replispec.conformance.coverage import Covered, counted
from replispec.conformance.families import clauses
from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing, by_clause

SIGNS = {
    CaseVerdict.PASS: "pass",
    CaseVerdict.FAIL: "**fail**",
    CaseVerdict.UNSUPPORTED: "unsupported",
    CaseVerdict.SKIPPED: "-",
    CaseVerdict.ERROR: "**error**",
}


def compliance_page(runs: Sequence[RunResult], covered: Sequence[Covered]) -> str:
    """The Markdown page. `runs`: at most one of each kind and target."""
    ordered = sorted(runs, key=lambda run: (run.kind, run.implementation, _numbers(run.release)))
    lines = [
        "<!-- Written by `make conformance` from the last runs on all targets. Do not edit. -->",
        "# Compliance",
        "",
        "What the conformance suite found at real implementations, on nothing but their bytes. A cell counts",
        "the cases of a clause: those that passed, of those that were judged. `-` means that no case of the",
        "clause is for this release or kind. How a case is written: [writing a case](writing-a-case.md).",
        "",
        *_overview(ordered),
    ]
    for kind in sorted({run.kind for run in ordered}):
        of_kind = [run for run in ordered if run.kind == kind]
        lines += [f"## Clauses: {kind}", "", *_matrix(of_kind)]
    lines += ["## Failures", "", *_failures(ordered)]
    lines += ["## Clauses without a case", "", *_uncovered(covered)]
    return "\n".join(lines).rstrip() + "\n"


def label(run: RunResult) -> str:
    """What a run is called in a table."""
    return " ".join(filter(None, (run.implementation or run.target, run.release)))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def _overview(runs: Sequence[RunResult]) -> Iterator[str]:
    heads = ("kind", "subject", "pass", "fail", "of them expected", "unsupported", "skipped", "error")
    yield _row([*heads, "findings", "took"])
    yield _row(["---"] * (len(heads) + 2))
    for run in runs:
        counts = run.counts()
        known = sum(each.standing is Standing.EXPECTED for each in run.results)
        cells = [run.kind, label(run), counts["pass"], counts["fail"], known]
        cells += [counts["unsupported"], counts["skipped"], counts["error"]]
        cells += [len(run.findings(strict=False)), f"{run.took_s:.0f} s"]
        yield _row(cells)
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


def _failures(runs: Sequence[RunResult]) -> Iterator[str]:
    for run in runs:
        failed = [each for each in run.results if each.verdict in (CaseVerdict.FAIL, CaseVerdict.ERROR)]
        if not failed:
            continue
        yield f"### {run.kind}: {label(run)}"
        yield ""
        yield "| case | basis | demands | symptom | known as |"
        yield "| --- | --- | --- | --- | --- |"
        for each in failed:
            known = ", ".join(each.bugs) if each.standing is Standing.EXPECTED else each.standing.value
            cells = [f"`{each.id}`", each.basis, each.requirement, each.symptom or each.reason]
            yield _row([*cells, known or "expected"])
        yield ""


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
