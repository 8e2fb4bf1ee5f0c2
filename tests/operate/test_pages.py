"""What the pages name is there: files, roles, commands and options; and each page is followed by a test."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from replispec.cli.main import command_line
from replispec.runtime.configuration import parse
from replispec.wire.rocketmq.parameters import ROLES
from tests.house.tree import ROOT
from tests.operate.page import Page, fits, page

FOLDER = ROOT / "docs/operate"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")
PLACE = re.compile(r"/(?:etc|var/lib)/replispec/(\S+)")
INSTALL = re.compile(r"```sh install\n(.*?)```", re.DOTALL)


def commands(followed: Page) -> list[str]:
    return [step.line for step in followed.steps if step.line.startswith("replispec ")]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_followed_by_a_test(name: str) -> None:
    (test,) = [
        path
        for path in (ROOT / "tests/operate").glob("test_*.py")
        if path.stem == f"test_{name.replace('-', '_')}"
    ]
    assert f'"{name}"' in test.read_text()
    assert page(name).steps != []


@pytest.mark.parametrize("name", NAMES)
def test_files_of_a_page_are_taken_by_their_roles_without_notes(name: str) -> None:
    for _, role, text in page(name).files:
        assert parse(text, ROLES[role]).notes == ()


@pytest.mark.parametrize("name", NAMES)
def test_commands_of_a_page_are_understood(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker").mkdir()
    monkeypatch.chdir(tmp_path)
    found = commands(page(name))
    assert found != []
    for line in found:
        words = shlex.split(PLACE.sub(r"\1", line).replace("$CONTROLLERS", "10.99.0.11:9878"))[1:]
        command: click.Command = command_line
        context = click.Context(command, info_name="replispec")
        while isinstance(command, click.Group):
            inner = command.get_command(context, words[0])
            assert inner is not None, line
            command, words = inner, words[1:]
        command.make_context(line, words, parent=context).close()


def test_what_is_installed_is_there() -> None:
    (text,) = INSTALL.findall((FOLDER / "several-machines.md").read_text())
    named = re.findall(r"(?:cp|-c) ([\w./*-]+\.(?:service|txt))", text)
    assert named == ["constraints.txt", "deploy/systemd/*.service"]
    assert all(list(ROOT.glob(each)) for each in named)


def test_an_output_fits_up_to_blanks_open_words_and_lines_left_out() -> None:
    said = "a  1\nb\nc ends at 17, at 10.0.0.1:9\n"
    assert fits(["a 1", "...", "c ends at NUMBER, at ADDRESS"], said)
    assert fits(["..."], "")
    assert not fits(["a 1", "c ends at NUMBER, at ADDRESS"], said)
    assert not fits(["a 1", "..."], "a 2\n")
    assert not fits([], said)
