"""The log of a process: lines that its disk has no room for hold nobody up, and are counted."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterable

from replispec.runtime.net.host_shell import Process, run
from replispec.runtime.net.log_shell import Log
from replispec.runtime.world import Effect, Event, Halt, Level, Member, Started, Ticked
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
            log.write(Level.INFO, "role", "peer dropped", {"number": number})
        first = [json.loads(reader.readline()) for _ in range(100)]
        assert [each["number"] for each in first] == list(range(100))
        log.write(Level.INFO, "role", "the last")
        stream.close()
        lines = [json.loads(line) for line in reader]
    assert [each["what"] for each in lines[-2:]] == ["the last", "lines that could not be written"]
    assert 100 + len(lines) - 2 + lines[-1]["lines"] == 10_000
