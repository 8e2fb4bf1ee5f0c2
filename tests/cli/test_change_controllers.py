"""The page about changing controllers, followed word by word with real processes, on other ports."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import command, replispec
from tests.cli.test_three_controllers import free_ports
from tests.house.tree import ROOT

PAGE = (ROOT / "docs/change-controllers.md").read_text()
FILES = re.findall(r"```properties (\S+)\n(.*?)```", PAGE, re.DOTALL)
CONSOLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
# What a run decides.
OPEN = {"LEADER": r"n\d", "PART": "(leads|votes)", "NUMBER": r"\d+", "PORT": r"\d+"}


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end with the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for each in found:
        each.kill()
        each.wait()
        if each.stdout is not None:
            each.stdout.close()


def steps() -> Iterator[tuple[str, str]]:
    """Each command of the page, and what it prints."""
    for console in CONSOLES:
        for step in console.split("$ ")[1:]:
            line, _, prints = step.partition("\n")
            yield line, prints


def begun(line: str, folder: Path) -> subprocess.Popen[str]:
    """A command that goes on behind: it has said that it listens."""
    errors = (folder / "errors.txt").open("a")
    process = subprocess.Popen(
        command(*shlex.split(line.removesuffix(" &"))[1:]),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    errors.close()
    assert process.stdout is not None
    assert str(process.pid) in process.stdout.readline(), (folder / "errors.txt").read_text()
    return process


def fits(prints: str, said: str) -> bool:
    """Whether this was said, where a run decides some words."""
    pattern = re.escape(prints)
    for word, values in OPEN.items():
        pattern = pattern.replace(word, values)
    return re.fullmatch(pattern, said) is not None


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_the_page_is_followed_word_by_word(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    ports = {f"987{number}": str(port) for number, port in enumerate(free_ports(5), start=1)}

    def here(text: str) -> str:
        return re.sub(r"\b987[1-5]\b", lambda found: ports[found[0]], text)

    for name, text in FILES:
        (tmp_path / f"{name}.properties").write_text(here(text))
    for line, prints in steps():
        if line.endswith(" &"):
            started.append(begun(here(line), tmp_path))
            continue
        if line == "kill $(pgrep -f alone.properties)":
            alone = started.pop()
            alone.terminate()
            assert alone.wait(10) == 0
            assert alone.stdout is not None
            alone.stdout.close()
            continue
        found = replispec(*shlex.split(here(line))[1:], cwd=tmp_path)
        said = found.stdout + found.stderr + (f"[{found.returncode}]\n" if found.returncode else "")
        assert fits(here(prints), said), (line, said, (tmp_path / "errors.txt").read_text())
    # The one that was removed has ended, with one line.
    assert started[0].wait(10) == 1
    assert [each.poll() for each in started[1:]] == [None, None, None, None]
    lines = (tmp_path / "errors.txt").read_text().splitlines()
    (last,) = [each for each in lines if not each.startswith("{")]
    assert "n1 was removed from the group 'group-a/n1,n2,n3', for good" in last


def test_the_page_names_files_and_commands() -> None:
    controllers = [f"controller-{number}" for number in (1, 2, 3, 4)]
    assert [name for name, _ in FILES] == [*controllers, "alone", "controller-5"]
    assert len(list(steps())) > 10
