"""What became of each edit of a specification: kept in a file as it becomes known, and told as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

SURVIVED, EQUAL, REFUSED = "survived", "equivalent", "refused by the compiler"
EXPLORER, STORIES = "explorer", "stories"
_CELL = 240


@dataclass(slots=True)
class MutantOutcome:
    """What became of one edit. `digest` is that of the edited source: of another one nothing is known.

    `asked` are the judges that were asked, in that order, each with the test or message by which it noticed,
    or nothing. `reason` says why an edit that nobody noticed is none. `is_whole` once nobody is left to ask.
    """

    kind: str
    edit: str
    digest: str
    asked: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    is_whole: bool = False

    @property
    def all_noticed_by(self) -> tuple[str, ...]:
        """Who noticed it, as far as they were asked."""
        return tuple(who for who, by in self.asked.items() if by)

    @property
    def noticed_by(self) -> str:
        """Who noticed it first, or why nobody did."""
        return next(iter(self.all_noticed_by), EQUAL if self.reason else SURVIVED)

    @property
    def verdict(self) -> str:
        """What the explorer is worth here: who noticed it, as one phrase."""
        if not self.is_whole:
            return "not known yet"
        others = [who for who in self.all_noticed_by if who not in (EXPLORER, STORIES)]
        if EXPLORER in self.all_noticed_by:
            return "explorer and others" if others else "explorer alone"
        if others:
            return others[0] if others[0] in (REFUSED, EQUAL) else "others, not the explorer"
        return "nobody, and nobody can" if self.reason else "nobody"


def known(out: Path) -> dict[str, MutantOutcome]:
    """What a run before found, by the name of the edit; nothing where there was none."""
    if not out.exists():
        return {}
    return {each["edit"]: MutantOutcome(**each) for each in json.loads(out.read_text("utf-8"))}


def write(outcomes: Sequence[MutantOutcome], out: Path) -> None:
    """Keep what is known. What was kept is there until all of this is."""
    out.parent.mkdir(parents=True, exist_ok=True)
    written = out.with_suffix(".part")
    written.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n", "utf-8")
    written.replace(out)


def summary(outcomes: Sequence[MutantOutcome]) -> Iterator[str]:
    """How many edits were noticed by whom, in all and of each kind, and who was alone."""
    for who, count in Counter(each.noticed_by for each in outcomes).most_common():
        yield f"{count:>4} {who}"
    for kind in sorted({each.kind for each in outcomes}):
        found = Counter(each.noticed_by for each in outcomes if each.kind == kind)
        yield f"     {kind}: {', '.join(f'{count} {who}' for who, count in found.most_common())}"
    alone = Counter(each.all_noticed_by[0] for each in outcomes if len(each.all_noticed_by) == 1)
    everybody = Counter(who for each in outcomes for who in each.all_noticed_by)
    for who, count in everybody.most_common() if len(everybody) > 1 else ():
        yield f"{count:>4} noticed by {who}, {alone[who]} by nobody else that was asked"


def table(outcomes: Sequence[MutantOutcome], command: str, commit: str, day: date) -> str:
    """The page of all edits: what each is, what the explorer and what the others say of it."""
    counts = Counter(each.verdict for each in outcomes)
    lines = [
        "# Single edits of the specification, and who notices them",
        "",
        f"Written by `{command}`",
        f"on {day.isoformat()}, of commit {commit}. The explorer is asked about each edit, the others until",
        "one of them notices ([decision 97](decisions/0097-the-explorer-is-asked-first.md)).",
        "What the suite alone notices: [its share](suite-share.md). Of logical queues and static topics",
        "[every edit](mutants-of-queues.md) was made.",
        "",
        "| who notices | edits |",
        "| --- | --- |",
        *(f"| {verdict} | {count} |" for verdict, count in counts.most_common()),
        "",
        "| | edit | verdict | the explorer | the others |",
        "| --- | --- | --- | --- | --- |",
    ]
    for number, each in enumerate(outcomes, 1):
        edit = each.edit.replace("<", "\\<")
        lines.append(f"| {number} | {edit} | {each.verdict} | {_explored(each)} | {_others(each)} |")
    return "\n".join(lines) + "\n"


def _explored(outcome: MutantOutcome) -> str:
    if EXPLORER not in outcome.asked:
        return "not asked"
    return _cell(outcome.asked[EXPLORER]) or "all promises hold"


def _others(outcome: MutantOutcome) -> str:
    found: Mapping[str, str] = {who: by for who, by in outcome.asked.items() if who != EXPLORER and by}
    said = "; ".join(f"{who}: {_cell(by)}" for who, by in found.items())
    if outcome.reason:
        said = "; ".join(filter(None, (said, outcome.reason.strip())))
    return said or f"nothing: {', '.join(who for who in outcome.asked if who != EXPLORER) or 'nobody asked'}"


def _cell(text: str) -> str:
    """A text for a column: of a long one its beginning, for the rest stands in the file of outcomes."""
    text = text if len(text) <= _CELL else f"{text[:_CELL]} ..."
    return text.replace("|", "\\|").replace("<", "\\<").replace("\n", " ").removeprefix("FAILED ")
