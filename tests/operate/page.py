"""A page for operators as a test follows it: files by machine, commands in order, what each prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.house.tree import ROOT

FILE = re.compile(r"```properties ([m\d ]+) (\S+)\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
PROMPT = re.compile(r"^(m\d)[#$] (.*)$")
# What a run decides.
OPEN = {
    "NUMBER": r"\d+",
    "ADDRESS": r"[\d.]+:\d+",
    "WORDS": r".+",
    "LEADER": r"n\d",
    "PART": r"(?:leads|votes)",
}
ANYTHING = "..."


@dataclass(frozen=True, slots=True)
class Step:
    """One command on a machine, and the lines that it prints."""

    machine: str
    line: str
    prints: Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """`files`: machines, name and text of each."""

    files: Sequence[tuple[Sequence[str], str, str]]
    steps: Sequence[Step]


def page(name: str) -> Page:
    """A page of docs/operate."""
    text = (ROOT / "docs/operate" / f"{name}.md").read_text()
    files = [(machines.split(), name, lines) for machines, name, lines in FILE.findall(text)]
    return Page(files, list(_steps(text)))


def _steps(text: str) -> Iterator[Step]:
    for console in CONSOLE.findall(text):
        machine, line, prints = "", "", list[str]()
        for each in console.splitlines():
            prompt = PROMPT.match(each)
            if prompt is None and line.endswith("\\"):
                line = f"{line[:-1].rstrip()} {each.strip()}"
            elif prompt is None:
                prints.append(each)
            else:
                if machine:
                    yield Step(machine, line, prints)
                machine, line, prints = prompt[1], prompt[2], []
        assert machine, console
        yield Step(machine, line, prints)


def fits(prints: Sequence[str], said: str) -> bool:
    """Whether this was said, up to blanks, and where a run decides some words or `...` lines."""
    patterns = []
    for line in prints:
        if line == ANYTHING:
            patterns.append(r"(?:.*\n)*?")
            continue
        pattern = re.escape(_even(line))
        for word, values in OPEN.items():
            pattern = pattern.replace(word, values)
        patterns.append(f"{pattern}\n")
    return (
        re.fullmatch("".join(patterns), "".join(f"{_even(each)}\n" for each in said.splitlines())) is not None
    )


def _even(line: str) -> str:
    return " ".join(line.split())
