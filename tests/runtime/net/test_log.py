"""The log of a process: lines that its disk has no room for hold nobody up, and are counted."""

from __future__ import annotations

import errno
import io
import json
import os
import select
import subprocess
from collections.abc import Iterable
from pathlib import Path

from replispec.runtime.net.host_shell import Process, run
from replispec.runtime.net.log_shell import JSON, TEXT, Log, LogFile
from replispec.runtime.seeing.line_limits import ABOUT_ONE_MAX, OF_A_KIND_MAX, WINDOW_US
from replispec.runtime.world import Effect, Event, Halt, Level, Member, Started, Ticked
from tests.cli.command import command
from tests.runtime.net.hosted import ScriptedNode


class _Filling(io.StringIO):
    """A stream whose disk may be full."""

    is_full = False

    def flush(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space left on device")


def test_a_role_serves_though_its_output_has_no_room() -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Started):
            node.due_ms = event.now_ms + 100
        elif isinstance(event, Ticked):
            yield Halt("it was time")

    node, out, errors = ScriptedNode(react), _Filling(), io.StringIO()
    out.is_full = True
    run([Member("role", node)], Process(), out=out, errors=errors)
    noted, halted = errors.getvalue().splitlines()
    assert json.loads(noted)["what"] == "nobody is told that it listens"
    assert halted.endswith("it was time")


def test_lines_that_cannot_be_written_are_counted_when_one_can() -> None:
    stream = _Filling()
    log = Log(stream, Level.INFO, lambda: 0)
    stream.is_full = True
    for number in range(3):
        log.write(Level.INFO, "controller", f"lost {number}")
    stream.is_full = False
    stream.truncate(0)
    stream.seek(0)
    log.write(Level.INFO, "controller", "kept")
    log.write(Level.INFO, "controller", "kept too")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["what"] for line in lines] == ["kept", "lines that could not be written", "kept too"]
    assert lines[1]["lines"] == 3


def test_nobody_waits_for_a_reader_of_the_log_that_reads_nothing() -> None:
    """The old way to find out is to wait for ever."""
    read, write = os.pipe()
    with open(read, encoding="utf-8") as reader, open(write, "w", encoding="utf-8") as stream:
        log = Log(stream, Level.INFO, lambda: 0)
        for number in range(10_000):
            log.write(Level.INFO, "role", f"dropped {number}", {"number": number})
        first = [json.loads(reader.readline()) for _ in range(100)]
        assert [each["number"] for each in first] == list(range(100))
        log.write(Level.INFO, "role", "the last")
        stream.close()
        lines = [json.loads(line) for line in reader]
    assert [each["what"] for each in lines[-2:]] == ["the last", "lines that could not be written"]
    assert 100 + len(lines) - 2 + lines[-1]["lines"] == 10_000


def _lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_a_peer_can_provoke_is_written_only_so_often_and_the_rest_is_counted() -> None:
    now_us, stream = 0, io.StringIO()
    log = Log(stream, Level.INFO, lambda: now_us)
    for number in range(1_000):
        log.write(Level.WARNING, "broker", "peer dropped", {"peer": f"10.0.0.1:{number}"})
    assert len(_lines(stream)) == ABOUT_ONE_MAX
    now_us = WINDOW_US
    log.write(Level.INFO, "broker", "master now")
    left_out, now = _lines(stream)[ABOUT_ONE_MAX:]
    assert (left_out["what"], left_out["of"], left_out["lines"]) == (
        "lines left out",
        "peer dropped",
        1_000 - ABOUT_ONE_MAX,
    )
    assert now["what"] == "master now"
    assert log.lines["warning"] == 1_000


def test_one_broker_that_makes_lines_takes_none_of_the_others() -> None:
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0)
    for _ in range(100):
        log.write(Level.INFO, "nameserver", "broker registered", {"broker": "loud", "id": 1})
    log.write(Level.INFO, "nameserver", "broker registered", {"broker": "quiet", "id": 1})
    assert _lines(stream)[-1]["broker"] == "quiet"


def test_names_without_end_make_no_lines_without_end() -> None:
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0)
    for number in range(10_000):
        log.write(Level.INFO, "nameserver", "broker registered", {"broker": f"b{number}", "id": 1})
    assert len(_lines(stream)) == OF_A_KIND_MAX


def test_no_peer_makes_a_line_that_a_pipe_does_not_take() -> None:
    long = "\U0001f600" * 500
    read, write = os.pipe()
    with open(read, encoding="utf-8") as reader, open(write, "w", encoding="utf-8") as stream:
        for form in (JSON, TEXT):
            log = Log(stream, Level.INFO, lambda: 0, form=form)
            for values in (
                {"who": long},
                {"who": long, "peer": long, "reason": "\x00" * 9_000, "asked": [long] * 500},
                {f"value{number}": long for number in range(40)},
                {f"value{number}": '"' * 5_000 for number in range(40)},
            ):
                log.write(Level.WARNING, "controller", "request refused", values)
                assert log.left_out == 0
                line = reader.readline()
                assert "request refused" in line
                assert len(line.encode()) <= select.PIPE_BUF


def test_a_line_that_is_to_be_there_always_is_never_left_out() -> None:
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0)
    for number in range(60):
        log.write(Level.INFO, "controller", "administration", {"number": number})
        log.write(Level.INFO, "controller", "administration", {"number": number, "made": 1}, always=True)
    lines = _lines(stream)
    assert [line["number"] for line in lines if "made" in line] == list(range(60))
    assert len(lines) == 60 + ABOUT_ONE_MAX


def test_what_was_left_out_is_said_at_the_end() -> None:
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0)
    for _ in range(ABOUT_ONE_MAX + 5):
        log.write(Level.WARNING, "broker", "peer dropped")
    log.end("broker")
    assert _lines(stream)[-1]["lines"] == 5


def test_a_line_for_people_has_its_values_behind_it_and_breaks_nowhere() -> None:
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0, form=TEXT)
    log.write(
        Level.ERROR, "broker", "master lost", {"master": "10.0.0.1:1", "reason": 'a "b"\nc', "set": [1, 2]}
    )
    assert stream.getvalue() == (
        "1970-01-01T00:00:00.000Z ERROR   broker: master lost; "
        'master=10.0.0.1:1 reason="a \\"b\\"\\nc" set=[1,2]\n'
    )


def test_a_list_is_a_list() -> None:
    stream = io.StringIO()
    Log(stream, Level.INFO, lambda: 0).write(Level.INFO, "controller", "sets", {"members": (1, "n2", None)})
    assert _lines(stream)[0]["members"] == [1, "n2", None]


def test_a_log_file_is_kept_in_parts_and_no_more_of_them_than_wanted(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    file = LogFile(path, bytes_max=4_096, files_max=2)
    log = Log(file, Level.INFO, lambda: 0)
    for number in range(400):
        log.write(Level.INFO, "broker", f"line {number}", {"text": "x" * 50})
    file.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broker.log", "broker.log.1", "broker.log.2"]
    assert all(each.stat().st_size <= 4_096 for each in tmp_path.iterdir())
    assert json.loads(path.read_text().splitlines()[-1])["what"] == "line 399"


def test_a_log_file_that_was_moved_away_goes_on_in_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    file = LogFile(path, bytes_max=1 << 20, files_max=1)
    log = Log(file, Level.INFO, lambda: 0)
    log.write(Level.INFO, "broker", "before")
    path.rename(tmp_path / "moved")
    assert log.reopen()
    log.write(Level.INFO, "broker", "after")
    file.close()
    assert "before" in (tmp_path / "moved").read_text()
    assert "after" in path.read_text()


def test_a_log_file_that_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x.log"
    done = subprocess.run(
        command("nameserver", "--set", "listenPort=0", "--set", f"logFile={path}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, f"replispec: {path}: No such file or directory\n")
