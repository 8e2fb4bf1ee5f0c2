"""What else has a name: cases of the suite, words of reports, commands and their options; and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import click

from replispec.cli.names import Name, specified
from replispec.cli.summary_words import KEYS, MOMENTS
from replispec.runtime import families

if TYPE_CHECKING:
    from replispec.conformance.model import Case

# Verdicts of a replay, and of the suite; standings; what a case rests on. Each with what it means.
WORDS: Final = {
    "verdict of a replay": {
        "ok": "Every evaluation held, and there was at least one.",
        "violated": "The captured bytes contradict the rule.",
        "unknown": "The capture lacks what a judgement needs: packets are missing, or nothing was seen.",
        "diverged": "Breaks the proposal in a way that is known of this release.",
    },
    "verdict of a case": {
        "pass": "The subject did what one of the allowed outcomes says.",
        "fail": "The subject did something that no allowed outcome says; the report holds the bytes.",
        "unsupported": "The subject says that it does not know the command.",
        "skipped": "The case is not for this release, or needs an address that was not given.",
        "error": "The case could not be played: what it prepares did not come about.",
    },
    "standing of a case": {
        "as it should": "The verdict is what the clause demands.",
        "expected failure": "The failure is known of this implementation and release, with its reason.",
        "failure": "A failure that is not known: a finding.",
        "unexpected pass": "Known as a failure, and it passes now: shorten the list of known failures.",
        "another symptom": "Known as a failure, and it fails in another way now.",
        "not judged": "The case came to no verdict.",
        "warning": "A recommendation failed; with --strict that is a finding.",
    },
    "severity": {
        "must": "A failure is a finding.",
        "should": "A failure is a warning; with --strict a finding.",
        "may": "Either way is right; it is recorded what the subject does.",
        "REQUIRED": "The clause has to be kept.",
        "RECOMMENDED": "The clause should be kept; there may be reasons not to.",
        "OPTIONAL": "The clause may be kept.",
    },
    "basis": {
        "proposal": "It rests on the proposal alone.",
        "implementation": "It rests on an implementation's source or measured behaviour.",
        "both": "It rests on the proposal and on an implementation.",
        "ours": "It rests on a decision of this specification.",
    },
    "key of summary.json": KEYS,
    "moment of a fail-over": MOMENTS,
    "kind of a change": {
        "breaks the wire": "Bytes that one side sends are refused or misread by the other.",
        "changes behaviour": "The bytes stay readable; something else is done, answered or judged.",
        "compatible": "Whoever follows the old specification notices nothing.",
        "only words": "Nothing but prose has changed.",
    },
}
ADVICE: Final = {
    "clause": (
        "play its cases with `replispec conformance run --case '*/ID/*' --trace` and read the bytes; if the"
        " subject is right, the clause is wrong: it stands in the file named above"
    ),
    "case": "play it alone with `replispec conformance run --case 'ID' --trace`, and read the bytes",
    "invariant": (
        "open report.html at the frames that prove it, read them with `replispec decode`, and look who sent"
        " what the clause forbids"
    ),
    "machine": (
        "a finding names the frame that no edge allows: compare the state before it with the machine's page"
        " in generated/docs"
    ),
    "value": "whoever gets it takes it for what is said above; the message that holds it says who sends it",
    "parameter": "set it in a role's properties file or with --set NAME=VALUE; --print-config shows all",
    "rule": "an implementation must return what its vectors say; `replispec conformance vectors` writes them",
    "budget": (
        "it bounds what `replispec spec explore` tries: more of it shows more, and takes longer;"
        " docs/systems.md"
    ),
    "property": (
        "`replispec spec explore SYSTEM` tells the shortest story that breaks it; a story is mended in the"
        " machine, or in the promise where that asks for too much; docs/systems.md"
    ),
    "defect": "each case that finds it is listed: play one with --trace to see whether a subject has it",
    "command": "its own --help has examples",
}
GENERAL: Final = "a change of it is judged by `replispec spec diff`; its page is in generated/docs"
WORD_ADVICE: Final = "docs/replay.md and docs/test-your-controller.md say how verdicts come about"


@cache
def shipped_cases() -> list[Case]:
    """The cases of every kind that is installed."""
    from replispec.cli.conformance import all_cases

    return all_cases(None)


def every_name(cases: Sequence[Case], command_line: click.Command) -> list[Name]:
    """All names, those of the specification first; `command_line` is the whole command with all below it."""
    found = (
        *(_cases(cases), _defects(cases), _suite(cases), _words(), _promised_by_all()),
        _below("replispec", command_line),
    )
    return [*specified(), *(name for names in found for name in names)]


def releases() -> set[str]:
    """The releases that the headers of some family name."""
    known = (getattr(families.wire(family, "codes"), "Release", ()) for family in families.names())
    return {each.name.removeprefix("V").replace("_", ".") for enum in known for each in enum}


def advice(name: Name) -> str:
    """What to do when it is violated or was met in a report."""
    if name.kind in WORDS:
        return WORD_ADVICE
    return (
        ADVICE.get(name.kind, GENERAL).replace("'*/ID/*'", f"'*/{name.id}/*'").replace("'ID'", f"'{name.id}'")
    )


def _cases(cases: Sequence[Case]) -> Iterator[Name]:
    from replispec.conformance.explain import explain

    for case in cases:
        said = explain(case.id, [case]) or []
        lines = tuple(line.removeprefix("  ") for line in said[2:])
        yield Name("case", case.id, case.requirement, more=lines)


def _defects(cases: Sequence[Case]) -> Iterator[Name]:
    """Known defects of implementations: the marks that cases name."""
    from replispec.cli.conformance import all_defects
    from replispec.conformance.explain import explain

    known = all_defects(None)
    for mark in dict.fromkeys(mark for case in cases for mark in (*case.bugs, *case.demands)):
        lines = (line.strip() for line in explain(mark, cases, known) or ())
        yield Name("defect", mark, f"A known defect: {known[mark].says}.", more=tuple(lines)[1:])


def _suite(cases: Sequence[Case]) -> Iterator[Name]:
    """Kinds of subjects, profiles and topics."""
    for title, names in (
        ("kind of subject", [case.kind for case in cases]),
        ("profile", [case.profile for case in cases]),
        ("topic", [case.topic for case in cases]),
    ):
        for name in dict.fromkeys(names):
            yield Name(title, name, f"{names.count(name)} cases of the suite belong to it.")
    for basis in dict.fromkeys(case.basis for case in cases):
        if basis not in WORDS["basis"]:
            yield Name("basis", basis, "The case rests on what this implementation was observed to do.")


def _words() -> Iterator[Name]:
    for kind, words in WORDS.items():
        # Keys and moments are common words: they stand beside what else bears the name.
        within = "summary." if words in (KEYS, MOMENTS) else ""
        yield from (Name(kind, f"{within}{word}", about) for word, about in words.items())


def _promised_by_all() -> Iterator[Name]:
    """What every system promises, without a word of its own about it."""
    from replispec.explorer.report import NO_EDGE

    about = "Every system promises it: no machine meets an event in a state where it has no edge for it."
    yield Name("property", NO_EDGE, about)


def _below(path: str, command: click.Command) -> Iterator[Name]:
    """A command, its options, and the commands below it."""
    context = click.Context(command, info_name=path)
    yield Name(
        "command", path, command.get_short_help_str(200), also=(path.partition(" ")[2],) * (" " in path)
    )
    for each in command.params:
        if isinstance(each, click.Option):
            yield Name("option", f"{path} {each.opts[-1]}", each.help or "", also=tuple(each.opts))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inside = command.get_command(context, name)
            if inside is not None:
                yield from _below(f"{path} {name}", inside)
