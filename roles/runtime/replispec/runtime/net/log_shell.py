"""The log of a process: one JSON object per line (JSON Lines), for people and for programs."""

from __future__ import annotations

import json
import os
import select
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from replispec.runtime.world import Level

VALUE_CHARS_MAX: Final = 400
"""A longer text in a log line is cut: much of it comes from peers."""


class Log:
    """Writes the lines of one level and above. `now_us`: microseconds since 1970.

    A line that cannot be written, because its disk or a pipe that nobody empties is full, say, is lost and
    nobody waits for it: the next one that can be is followed by how many were.
    """

    def __init__(self, stream: TextIO, level: Level, now_us: Callable[[], int]) -> None:
        self._stream = stream
        self._level = level
        self._now_us = now_us
        self._pipe = _pipe_of(stream)
        self._lost = 0

    def write(self, level: Level, role: str, what: str, values: Mapping[str, object] | None = None) -> None:
        """One line: time (UTC), level, role, what happened, and its values by name.

        A value that is not a number, a flag or absent is written as text; control characters are escaped.
        """
        if level < self._level:
            return
        if self._put(level, role, what, values or {}):
            lost, self._lost = self._lost, 0
            if lost:
                self._put(Level.WARNING, role, "lines that could not be written", {"lines": lost})

    def _put(self, level: Level, role: str, what: str, values: Mapping[str, object]) -> bool:
        now = datetime.fromtimestamp(self._now_us() / 1_000_000, tz=UTC)
        line: dict[str, object] = {
            "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level.name.lower(),
            "role": role,
            "what": what,
        }
        line.update((name, _shown(value)) for name, value in values.items())
        text = json.dumps(line) + "\n"
        try:
            if self._pipe is None or _takes(self._pipe, len(text)):
                self._stream.write(text)
                self._stream.flush()
                return True
        except OSError:
            pass
        self._lost += 1
        return False


def _pipe_of(stream: TextIO) -> int | None:
    """The descriptor of a stream that its reader can make wait."""
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return None
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _takes(pipe: int, size: int) -> bool:
    """Whether so many bytes can be written at once; of more than PIPE_BUF no system says so."""
    poll = select.poll()
    poll.register(pipe, select.POLLOUT)
    return size <= select.PIPE_BUF and bool(poll.poll(0))


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}... ({len(text)} characters)"
