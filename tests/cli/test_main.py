"""What every command does about help, errors and pipes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from replispec.cli.main import command_line
from replispec.replay.capture.arrays import save
from tests.cli.command import CAPTURES, command, replispec
from tests.house.tree import ROOT

COMMANDS = sorted(command_line.commands)


def test_without_a_command_the_help_is_shown() -> None:
    shown = replispec()
    assert "Usage: " in shown.stderr + shown.stdout
    assert shown.returncode == 2


def test_help_names_every_command_and_shows_examples() -> None:
    shown = replispec("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Examples:" in shown.stdout
    assert [name for name in COMMANDS if f"\n  {name}" not in shown.stdout] == []


def groups(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, groups within groups among them, by the words that name it."""
    yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from groups(inside_of(command, name), (*path, name))


def inside_of(group: click.Group, name: str) -> click.Command:
    """A command of a group; those of families are found when they are asked for."""
    found = group.get_command(click.Context(group), name)
    assert found is not None
    return found


@pytest.mark.parametrize("path", [*groups(command_line)], ids=" ".join)
def test_every_command_explains_itself_by_examples_and_every_option(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(command_line, [*path, "--help"])
    assert "Examples:" in shown.stdout
    found: click.Command = command_line
    for name in path:
        assert isinstance(found, click.Group)
        found = inside_of(found, name)
    options = [each for each in found.params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("path", [*groups(command_line)], ids=" ".join)
def test_help_says_whole_sentences(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(command_line, [*path, "--help"])
    assert (shown.exit_code, shown.exception) == (0, None)
    listed = shown.stdout.partition("Commands:")[2].partition("Examples:")[0]
    assert "..." not in listed


@pytest.mark.parametrize("path", [*groups(command_line)], ids=" ".join)
def test_help_may_be_asked_for_in_a_word(path: tuple[str, ...]) -> None:
    asked = CliRunner().invoke(command_line, ["help", *path])
    assert asked.exit_code == 0
    assert asked.stdout == CliRunner().invoke(command_line, [*path, "--help"]).stdout


def test_help_of_what_is_no_command_is_a_wrong_command_line() -> None:
    shown = CliRunner().invoke(command_line, ["help", "conformance", "walk"])
    assert shown.exit_code == 2
    assert "No such command 'conformance walk'" in shown.stderr


def test_the_version_may_be_asked_for_in_a_word() -> None:
    assert replispec("version").stdout == replispec("--version").stdout


def test_what_is_missing_is_installed_by_the_same_words_everywhere() -> None:
    told = re.compile(r"pip install '[^']*'")
    texts = [path.read_text() for path in (ROOT / "cli").rglob("*.py")]
    readme = set(told.findall((ROOT / "README.md").read_text()))
    assert {words for text in texts for words in told.findall(text)} <= readme


def test_an_unknown_command_is_a_wrong_command_line() -> None:
    assert replispec("frobnicate").returncode == 2


def test_a_file_that_is_missing_is_a_wrong_command_line() -> None:
    shown = replispec("decode", "nowhere.pcap")
    assert shown.returncode == 2
    assert "nowhere.pcap" in shown.stderr


def test_a_file_that_is_no_capture_is_one_line_with_its_name_and_the_byte(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are notes")
    shown = replispec("decode", "notes.txt", cwd=tmp_path)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert (
        shown.stderr == "replispec: notes.txt: no packet capture: the file starts with 74686573 (at byte 0)\n"
    )


def test_a_folder_is_no_capture(tmp_path: Path) -> None:
    shown = replispec("decode", tmp_path)
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr


def test_a_reader_that_goes_away_ends_the_command_without_a_word() -> None:
    capture = CAPTURES / "m_mtu1500.pcap"
    with subprocess.Popen(
        command("decode", capture, "--format", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    "words", [("explain", "1001"), ("decode", CAPTURES / "n_learner_alone.pcap")], ids=str
)
def test_a_disk_that_takes_no_more_is_one_line(words: tuple[str | Path, ...]) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(command(*words), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "replispec: what was to be written does not fit: No space left on device\n"


def test_a_capture_that_is_made_shorter_while_it_is_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(bytes(1 << 20))
    reader = (
        "import mmap, sys; from replispec.cli.cut_captures import name_cut_captures; name_cut_captures()\n"
        "with open(sys.argv[1], 'r+b') as file: data = mmap.mmap(file.fileno(), 0); file.truncate(24)\n"
        "data[1 << 19]"
    )
    done = subprocess.run([sys.executable, "-c", reader, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("replispec: a capture became shorter while it was read")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_numbers_that_do_not_fit_say_so() -> None:
    with pytest.raises(OSError, match="No space left"):
        save(np.arange(100_000), FULL)


def test_a_command_without_standard_output_does_its_work_without_a_word() -> None:
    words = map(str, command("decode", CAPTURES / "n_learner_alone.pcap"))
    closed = ["sh", "-c", '"$@" >&-', "sh", *words]
    done = subprocess.run(closed, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
