"""docs/systems.md word for word: what it has its reader write and run does what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explorer.walkthrough import Command, File, environment, fits, run, steps


def test_whoever_follows_the_page_sees_what_it_shows(tmp_path: Path) -> None:
    given, done = environment(), []
    for step in steps():
        if isinstance(step, File):
            (tmp_path / step.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / step.name).write_text(step.text)
            continue
        if step.line.startswith("export "):
            name, _, value = step.line.removeprefix("export ").partition("=")
            given[name] = value
            continue
        result = run(step, tmp_path, given)
        assert not step.shown or fits(step.shown, result.stdout), (step.line, result.stdout, result.stderr)
        done.append((step.line.split(" --")[0], result.returncode))
    explored = [code for line, code in done if line.startswith("replispec spec explore")]
    assert explored == [1, 1, 0], "the exit codes of what is broken, broken on a page, and mended"
    assert {code for line, code in done if not line.startswith("replispec spec explore")} == {0}
    assert (tmp_path / "story.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("shown", "output", "is_shown"),
    [
        (("...", "b", "..."), "a\nb\nc\n", True),
        (("...", "b"), "b\n", True),
        (("...", "b"), "a\nb\nc\n", False),
        (("a",), "b\n", False),
    ],
)
def test_an_output_that_differs_is_seen(shown: tuple[str, ...], output: str, *, is_shown: bool) -> None:
    assert fits(shown, output) is is_shown


def test_the_page_has_files_and_commands() -> None:
    found = list(steps())
    assert len([each for each in found if isinstance(each, File)]) == 5
    assert len([each for each in found if isinstance(each, Command) and each.shown]) == 4
