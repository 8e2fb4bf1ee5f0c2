"""The log of a process: lines that its disk has no room for hold nobody up, and are counted."""

from __future__ import annotations

import errno
import io
import json

from replispec.runtime.net.log_shell import Log
from replispec.runtime.world import Level


class _Filling(io.StringIO):
    """A stream whose disk may be full."""

    is_full = False

    def flush(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space left on device")


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
