"""Tasks side by side: in order, each with what it prints, none left behind."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from lab.side_by_side import Task, side_by_side


def tell(word: str) -> str:
    """A task that prints and gives a word."""
    os.write(1, f"{word}\n".encode())
    return word


def die() -> str:
    """A task whose process dies."""
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def last(begun: Path, ended: Path) -> str:
    """A task that says that it began, and lasts until it is interrupted."""
    begun.write_text(str(os.getpid()))
    try:
        signal.pause()
    except KeyboardInterrupt:
        ended.touch()
        raise
    return ""


def hear(begun: Path) -> str:
    """A task that is done when another one has said that it began."""
    return begun.read_text()


def test_each_gives_what_it_found_and_what_it_printed_lies_in_its_file(tmp_path: Path) -> None:
    tasks = [Task(partial(tell, word), tmp_path / word) for word in ("one", "two", "three")]
    found = {done.found for done in side_by_side(tasks, 2)}
    assert found == {"one", "two", "three"}
    assert [task.printed.read_text() for task in tasks] == ["one\n", "two\n", "three\n"]


def test_a_process_that_dies_gives_nothing_and_costs_no_other(tmp_path: Path) -> None:
    tasks = [Task(die, tmp_path / "a"), Task(partial(tell, "well"), tmp_path / "b")]
    assert [done.found for done in side_by_side(tasks, 1)] == [None, "well"]


def test_who_stops_listening_leaves_no_task_behind(tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    os.mkfifo(begun)
    tasks = [Task(partial(last, begun, ended), tmp_path / "a"), Task(partial(hear, begun), tmp_path / "b")]
    running = side_by_side(tasks, 2)
    heard = next(running).found
    running.close()
    assert ended.exists(), "it was interrupted as by Ctrl-C"
    with pytest.raises(ProcessLookupError):
        os.kill(int(heard or ""), 0)
