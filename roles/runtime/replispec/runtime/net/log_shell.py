"""The log of a process: one JSON object per line (JSON Lines), or a text for people."""

from __future__ import annotations

import json
import logging
import os
import select
import stat
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, Protocol

from replispec.runtime.seeing.line_limits import LineLimits
from replispec.runtime.world import Level

LINE_BYTES_MAX: Final = select.PIPE_BUF
"""A longer line is lost where a pipe takes it, so there is none."""
VALUE_CHARS_MAX: Final = 400
"""A longer text in a log line is cut: much of it comes from peers."""
VALUES_SHOWN_MAX: Final = 64
"""Of a list, so many."""
_ROOMS: Final = ((VALUE_CHARS_MAX, VALUES_SHOWN_MAX), (200, 12), (60, 12), (16, 2))
"""Characters of a text, as they are written, and values of a list: the first with which the line is short
enough."""
TEXT: Final = "TEXT"
JSON: Final = "JSON"


class LogStream(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> object:
        """Take a line."""
        ...

    def flush(self) -> None:
        """Let it leave."""
        ...


class LogError(Exception):
    """The file of the log cannot be opened."""


class LogFile:
    """A file that is kept in parts: FILE, FILE.1 and so on, the newest first. Raises OSError."""

    def __init__(self, path: Path, *, bytes_max: int, files_max: int) -> None:
        self._handler = _Rotating(path, maxBytes=bytes_max, backupCount=files_max, encoding="utf-8")

    def write(self, text: str, /) -> None:
        """Take a line. Raises OSError."""
        self._handler.emit(logging.LogRecord("", 0, "", 0, text.removesuffix("\n"), None, None))

    def flush(self) -> None:
        """Let it leave; `write` has."""

    def reopen(self) -> None:
        """Go on in a new file where somebody has moved this one."""
        self._handler.close()

    def close(self) -> None:
        """End it."""
        self._handler.close()


class _Rotating(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        """Whoever writes a line hears that it is lost."""
        raise  # noqa: PLE0704  called while an error is handled, as the library says


class Log:
    """Writes the lines of one level and above, in the form `JSON` or `TEXT`. `now_us`: microseconds since
    1970. `heard` is handed every line that is written.

    A line that cannot be written, because its disk or a pipe that nobody empties is full, say, is lost and
    nobody waits for it: the next one that can be is followed by how many were. Of lines that say the same
    only so many are written in ten seconds; how many were left out is said after these.
    """

    def __init__(
        self,
        stream: LogStream,
        level: Level,
        now_us: Callable[[], int],
        *,
        form: str = JSON,
        heard: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        self._stream = stream
        self._level = level
        self._now_us = now_us
        self._form = form
        self.heard = heard
        self._pipe = _pipe_of(stream)
        self._lost = 0
        self._limits = LineLimits()
        self.lines: Final = {each.name.lower(): 0 for each in Level}
        """Lines by their level, those that were left out included."""
        self.left_out = 0

    def write(
        self,
        level: Level,
        role: str,
        what: str,
        values: Mapping[str, object] | None = None,
        *,
        always: bool = False,
    ) -> None:
        """One line: time (UTC), level, role, what happened, and its values by name.

        A value that is not a number, a flag, absent or a list of such is written as text; control characters
        are escaped. One that is to be there `always` is not left out, however many say the same.
        """
        if level < self._level:
            return
        self.lines[level.name.lower()] += 1
        now_us = self._now_us()
        self._tell_left_out(role, now_us)
        given = values or {}
        if not always and not self._limits.admits(what, (given.get("broker"), given.get("id")), now_us):
            self.left_out += 1
            return
        if self._put(level, role, what, given, now_us):
            lost, self._lost = self._lost, 0
            if lost:
                values = {"lines": lost}
                self._put(Level.WARNING, role, "lines that could not be written", values, now_us)

    def end(self, role: str) -> None:
        """Say what is still to be said of lines that were left out."""
        self._tell_left_out(role, self._now_us(), at_end=True)

    def reopen(self) -> bool:
        """Go on in a new file, if it is a file of ours."""
        if isinstance(self._stream, LogFile):
            self._stream.reopen()
            return True
        return False

    def _tell_left_out(self, role: str, now_us: int, *, at_end: bool = False) -> None:
        for what, count in self._limits.take_left_out(now_us, at_end=at_end):
            self._put(Level.WARNING, role, "lines left out", {"of": what, "lines": count}, now_us)

    def _put(self, level: Level, role: str, what: str, values: Mapping[str, object], now_us: int) -> bool:
        now = datetime.fromtimestamp(now_us / 1_000_000, tz=UTC)
        head: dict[str, object] = {
            "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level.name.lower(),
            "role": role,
            "what": what,
        }
        line, text = self._bounded(head, values)
        if self.heard is not None:
            self.heard(line)
        try:
            if self._pipe is None or _takes(self._pipe, len(text)):
                self._stream.write(text)
                self._stream.flush()
                return True
        except OSError:
            pass
        self._lost += 1
        self.left_out += 1
        return False

    def _bounded(
        self, head: Mapping[str, object], values: Mapping[str, object]
    ) -> tuple[Mapping[str, object], str]:
        """A line and its text, of which every character is a byte: values are cut until it fits."""
        for chars, count in _ROOMS:
            line = {**head, **{name: _shown(value, chars, count) for name, value in values.items()}}
            text = (_plain(line) if self._form == TEXT else json.dumps(line)) + "\n"
            if len(text) <= LINE_BYTES_MAX:
                break
        return line, text


def _plain(line: Mapping[str, object]) -> str:
    """A line for people: TIME LEVEL ROLE WHAT, NAME=VALUE. Texts with blanks, quotes or control characters
    are written as in JSON."""
    head, rest = dict(list(line.items())[:4]), dict(list(line.items())[4:])
    said = [f"{name}={_word(value)}" for name, value in rest.items()]
    start = f"{head['time']} {str(head['level']).upper():7} {head['role']}: {head['what']}"
    return f"{start}; {' '.join(said)}" if said else start


def _word(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    is_plain = text.isascii() and text.isprintable() and text and not set(text) & set(" \"'\\=")
    return text if not isinstance(value, str) or is_plain else json.dumps(text)


def _pipe_of(stream: LogStream) -> int | None:
    """The descriptor of a stream that its reader can make wait."""
    try:
        descriptor: int = getattr(stream, "fileno")()  # noqa: B009
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _takes(pipe: int, size: int) -> bool:
    """Whether so many bytes can be written at once; of more than PIPE_BUF no system says so."""
    poll = select.poll()
    poll.register(pipe, select.POLLOUT)
    return size <= LINE_BYTES_MAX and bool(poll.poll(0))


def _shown(value: object, chars: int, count: int) -> object:
    if isinstance(value, list | tuple):
        return [_one(each, chars) for each in value[:count]]
    return _one(value, chars)


def _one(value: object, chars: int) -> object:
    """A value, cut by what is written of it: an emoji is escaped, and takes twelve characters."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    shown = text[:chars]
    while len(json.dumps(shown)) - len('""') > chars:
        shown = shown[: len(shown) * 3 // 4]
    return text if shown == text else f"{shown}... ({len(text)} characters)"
