"""A variable that nobody reads is refused; what becomes its own next value alone is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import FILES, write
from tests.compiler.test_machine_refusals import CALLER, compile_again

READ = "if: last == event.text, about"
UNREAD = "if: event.text == 'again', about"
ASSIGNED = "assign: {last: event.text}"
FAULT = r"caller\.yaml:13: nobody reads last\. read it in a guard or a message, or leave it out"


def compiled(folder: Path, *edits: tuple[str, str]) -> dict[str, bytes]:
    """What is made of the family with these edits of its machine."""
    text = FILES[CALLER]
    for before, after in edits:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    write(folder)
    (folder / CALLER).write_text(text)
    return compile_again(folder)


@pytest.mark.parametrize(
    "assigned", [ASSIGNED, "assign: {last: 'first(last, event.text)'}", "do: [ring]"], ids=str
)
def test_a_variable_that_nobody_else_reads_is_refused(tmp_path: Path, assigned: str) -> None:
    with pytest.raises(SpecificationError, match=FAULT):
        compiled(tmp_path, (READ, UNREAD), (ASSIGNED, assigned))


NOTED_ONCE = """\
{from: IDLE, event: note, if: last == none, to: IDLE, assign: {last: event.text}}
  - {from: IDLE, event: note, else: true, to: IDLE}"""
NOTED = "{from: IDLE, event: note, to: IDLE, assign: {last: event.text}}"
READERS: dict[str, tuple[tuple[str, str], ...]] = {
    "a named guard": (),
    "an edge's condition": (
        (READ, UNREAD),
        (NOTED, NOTED_ONCE),
    ),
    "another variable": (
        (READ, UNREAD),
        ("assign: {count: count + 1}", "assign: {count: 'count + (1 if last == none else 2)'}"),
    ),
}


@pytest.mark.parametrize("edits", READERS.values(), ids=READERS)
def test_a_guard_a_condition_and_another_variable_are_readers(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    assert compiled(tmp_path, *edits)
