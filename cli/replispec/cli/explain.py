"""`replispec explain`: what a name means that a report, a message or a manual prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from replispec.cli.names import Index, Name
    from replispec.conformance.model import Case

EXAMPLES = """\b
Examples:
  replispec explain RIP44-ALTER-1                 a clause: who demands it, what checks it
  replispec explain controller/elect/RIP44-ELECT-13/1
  replispec explain 1001                          a code, with the messages that it names
  replispec explain broker_set.LED                a state of a machine
  replispec explain one-master-per-epoch          what a replay found
  replispec explain inSyncReplicas                a parameter
  replispec explain 5.1.1                         what began or ended with a release
"""
SHOWN_MAX = 12


@click.command(epilog=EXAMPLES, short_help="Say what any name in a report or message means.")
@click.argument("words", metavar="NAME", nargs=-1, required=True)
def explain(words: tuple[str, ...]) -> int:
    """Say what a NAME means, where it is written, what demands it, what checks it, and what to do about it.

    NAME is anything that a report, a summary, a message or a help text names: a clause, a case, a rule, a
    machine, a state, an event, an effect, a message, a field, a code, a parameter, a verdict, a release. A
    family or a kind may stand before it: `explain state LED`. A name that stands
    for several things lists them all.

    Exit codes: 0 explained, 2 unknown name.
    """
    from replispec.cli.explain_sources import every_name, releases, shipped_cases
    from replispec.cli.names import Index

    wanted = " ".join(words)
    cases = shipped_cases()
    index = Index(every_name(cases, click.get_current_context().find_root().command), releases())
    if (release := index.of_release(wanted)) is not None:
        click.echo("\n".join(_release(*release)))
        return 0
    found = index.find(wanted)
    if len(found) == 1:
        click.echo("\n".join(_lines(found[0], index, cases)))
    elif found:
        click.echo("\n".join(_listed(wanted, found)))
    else:
        near = index.near(wanted)
        hint = (
            f"; is it one of: {', '.join(near)}?"
            if near
            else "; `replispec explain --help` says what is known"
        )
        raise click.ClickException(f"unknown name {wanted!r}{hint}")
    return 0


def _lines(name: Name, index: Index, cases: Sequence[Case]) -> Iterator[str]:
    """All there is to say of one name."""
    from replispec.cli.explain_sources import advice

    entry = name.entry
    yield name.shown
    if name.about:
        yield f"  {name.about}"
    if entry.get("place"):
        yield f"  Written in: {entry['place']}"
    holder = _holder(name, index)
    if holder is not None:
        yield f"  Part of: {holder.shown}" + (f": {holder.about}" if holder.about else "")
    if name.also:
        yield f"  Also: {', '.join(name.also)}"
    yield from (f"  {key}: {value}" for key, value in entry.get("says", {}).items())
    yield from (f"  {line}" for line in name.more)
    yield from _demands(name, index)
    yield from _checks(name, index, cases)
    yield f"  What to do: {advice(name)}"


def _holder(name: Name, index: Index) -> Name | None:
    part_of = name.entry.get("part_of")
    same = (each for each in index.names if each.id == part_of and each.family == name.family)
    return next(same, None) if part_of else None


def _inherited(name: Name, index: Index, key: str) -> list[str]:
    """Clauses or findings of the object, or of the one that holds it."""
    found: list[str] = name.entry.get(key, [])
    holder = _holder(name, index)
    return found if found or holder is None else _inherited(holder, index, key)


def _demands(name: Name, index: Index) -> Iterator[str]:
    clauses = _inherited(name, index, "clauses")
    if clauses:
        yield "  Demanded by:"
    for clause in clauses:
        about = next((each.about for each in index.names if each.id == clause), "")
        yield f"    {clause}: {about}"


def _checks(name: Name, index: Index, cases: Sequence[Case]) -> Iterator[str]:
    """Findings of a replay, cases of the suite, and for a clause what of the specification cites it."""
    findings = [each for each in _inherited(name, index, "findings") if each not in name.spellings()]
    clauses = {name.id, *_inherited(name, index, "clauses")}
    checking = [case.id for case in cases if case.clause in clauses]
    citing = [each.shown for each in index.names if name.id in each.entry.get("clauses", ())]
    is_clause = name.kind == "clause"
    if findings:
        yield f"  Judged in traffic: {_cut(findings)}"
    if checking:
        yield f"  Cases of the suite ({len(checking)}): {_cut(checking)}"
    if is_clause and citing:
        yield f"  Cited by ({len(citing)}): {_cut(citing)}"
    if is_clause and not (checking or citing):
        yield "  Nothing checks it."


def _listed(wanted: str, found: Sequence[Name]) -> Iterator[str]:
    yield f"{wanted} stands for {len(found)} things; give one of these:"
    for name in found:
        yield f"  {name.shown}: {name.about}" if name.about else f"  {name.shown}"


def _release(release: str, begins: Sequence[Name], ends: Sequence[Name]) -> Iterator[str]:
    yield f"release {release}"
    if not begins and not ends:
        yield "  Nothing begins or ends with it: whatever began before it, and has not ended, holds."
    for title, names in (("Begins with it", begins), ("Ends with it", ends)):
        if names:
            yield f"  {title}:"
        for name in names:
            ranges = [value for key, value in name.entry["says"].items() if key in ("versions", "releases")]
            said = [
                f"{k.partition('.')[2]}: {v}"
                for k, v in name.entry["says"].items()
                if k.startswith("divergence.")
            ]
            yield f"    {name.shown}  {'; '.join((*ranges, *said))}"


def _cut(names: Sequence[str]) -> str:
    more = f", and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more
