"""Several files that are one capture: rotated while it was taken, put together without a copy.

`tcpdump -C`, `-G` and `-W`, and `dumpcap -b`, go on in the next file when one is full or old. Positions
in such a capture are those of the one file that would have been written without rotation: every file
but the first counts from its first packet, directly after the file before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from replispec.replay.capture.files import Capture, open_capture
from replispec.replay.capture.joined_walks import Walked
from replispec.replay.capture.records import (
    ALL_TIME,
    CaptureBytes,
    CaptureError,
    CaptureWarning,
    JoinedBytes,
    Split,
    Window,
)
from replispec.replay.tcp.packets import Packets, join_packets, read_packets

Source = str | Path | Sequence[str | Path]
"""One file, or the files of one capture in any order."""

# Packets of several processors are stamped out of order by less than this, in one file as between two.
OVERLAP_NS_MAXIMUM = 10**9
# A quiet network is silent for shorter than this: its brokers send heartbeats every second.
SILENCE_NS_MAXIMUM = 60 * 10**9
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Part:
    """An open file with packets: where its first packet's record is, and the times of first and last."""

    capture: Capture
    first_offset: int
    first_ns: int
    last_ns: int

    @property
    def name(self) -> str:
        return self.capture.whole.name


@dataclass(slots=True)
class Rotation:
    """The open files of one capture in their order; `name` is that of the file that was given first."""

    name: str
    files: list[Capture]
    _starts: list[int]
    _said: list[CaptureWarning]
    _window: Window = ALL_TIME

    @property
    def data(self) -> CaptureBytes:
        """The bytes of the capture by position."""
        if len(self.files) == 1:
            return self.files[0].data
        placed = zip(self._starts, self.files, strict=True)
        return JoinedBytes((start, file.whole.base, file.data) for start, file in placed)

    @property
    def warnings(self) -> list[CaptureWarning]:
        """What was read around so far, file after file."""
        if self._window != ALL_TIME:
            if any(file.exceeds(self._window) for file in self.files):
                reason = "packets outside of the chosen time were passed over"
                self.note(CaptureWarning(self.name, 0, reason))
            self._window = ALL_TIME
        return [*self._said, *(warning for file in self.files for warning in file.warnings)]

    def choose(self, window: Window) -> None:
        """Say that packets outside of a stretch of time are passed over, if there are any."""
        self._window = window

    def note(self, warning: CaptureWarning) -> None:
        """Add something that was read around."""
        self._said.append(warning)

    def packets(self) -> Packets:
        """The packets of all files; their offsets are positions in the capture."""
        return join_packets(
            [
                read_packets(file.data, records).moved(file.whole.base)
                for file in self.files
                for records in file.parts()
            ]
        )

    def cuts(self, split_bytes: int, known: Mapping[str, Mapping[int, Walked]] | None = None) -> list[Split]:
        """Splits of about `split_bytes` bytes, none over the end of a file, numbered through; `known`: by the
        path of a file what was walked of it already."""
        walks = known or {}
        found = [split for file in self.files for split in file.cuts(split_bytes, walks.get(file.whole.path))]
        return [replace(split, number=number) for number, split in enumerate(found)]


def paths_of(source: Source) -> tuple[Path, ...]:
    """The files of a source as they were given."""
    return (Path(source),) if isinstance(source, str | Path) else tuple(Path(path) for path in source)


def name_of(source: Source) -> str:
    """What rows call a source: the name of the file that was given first."""
    return paths_of(source)[0].name


@contextmanager
def open_rotation(source: Source, window: Window = ALL_TIME) -> Iterator[Rotation]:
    """Open one file, or all files of one capture, in order of their first packets.

    Packets outside of the window are passed over, as if they had not been captured; a warning says so where
    there are any.

    Raises CaptureError for a file that is no capture, and for files of which one begins more than
    OVERLAP_NS_MAXIMUM before another one ends: these were taken side by side. OSError when one cannot
    be opened.
    """
    name = name_of(source)
    with ExitStack() as stack:
        paths = paths_of(source)
        begun = [path for path in paths if path.stat().st_size] or paths[:1]
        files = [stack.enter_context(open_capture(path)) for path in begun]
        rotation = Rotation(name, files, [0], []) if len(paths) == 1 else _in_order(name, files)
        for path in paths:
            # The next file of a rotation exists before anything is written to it.
            if path not in begun:
                rotation.note(CaptureWarning(path.name, 0, "the file is empty"))
        for file in rotation.files:
            file.whole = replace(file.whole, capture=name, window=window)
        rotation.choose(window)
        yield rotation


def _in_order(name: str, files: Sequence[Capture]) -> Rotation:
    """The files that hold packets by the times of these, each placed after the one before it."""
    looked = [(file, *_look(file)) for file in files]
    parts = [part for _, part, _ in looked if part is not None]
    # Where no file has a packet the first one stands for all, and is walked again.
    left = [
        (file, stopped) for file, part, stopped in looked if part is None and (parts or file is not files[0])
    ]
    said = [warning for file, stopped in left for warning in (*file.warnings, *stopped)]
    parts.sort(key=lambda part: (part.first_ns, natural(part.name)))
    said += [warning for before, part in pairwise(parts) for warning in _between(before, part)]
    starts: list[int] = []
    end = 0
    for part in parts:
        whole = part.capture.whole
        base = end - part.first_offset if starts else 0
        part.capture.whole = replace(whole, base=base, is_first=not starts)
        starts.append(base + part.first_offset)
        end = base + whole.end
    return Rotation(name, [part.capture for part in parts] or [files[0]], starts or [0], said)


def _look(file: Capture) -> tuple[_Part | None, list[CaptureWarning]]:
    """The extent of a file's packets, None when it has none; and why the look at them stopped early."""
    first, last, stopped = file.ends()
    if not len(first.record_offset):
        return None, stopped
    return _Part(file, int(first.record_offset[0]), int(first.time_ns[0]), int(last.time_ns[-1])), stopped


def _between(before: _Part, part: _Part) -> Iterator[CaptureWarning]:
    """What is odd about the time between two files. Packets without times (0) tell nothing."""
    if not before.last_ns or not part.first_ns:
        return
    silent_ns = part.first_ns - before.last_ns
    if silent_ns < -OVERLAP_NS_MAXIMUM:
        raise CaptureError(
            part.name,
            part.first_offset,
            f"begins {_seconds(-silent_ns)} before {before.name} ends: two captures side by side are not one"
            " rotated capture; merge them by time first, for example with mergecap",
        )
    if silent_ns < 0:
        reason = f"begins {_seconds(-silent_ns)} before {before.name} ends; taken as its continuation"
        yield CaptureWarning(part.name, part.first_offset, reason)
    elif silent_ns > SILENCE_NS_MAXIMUM:
        reason = f"begins {_seconds(silent_ns)} after {before.name} ends: a file between them may be missing"
        yield CaptureWarning(part.name, part.first_offset, reason, unread=True)


def _seconds(duration_ns: int) -> str:
    return f"{duration_ns / 10**9:.3f} s"


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts names as people do: `a.pcap2` before `a.pcap10`."""
    texts, numbers = _DIGITS.split(name), _DIGITS.findall(name)
    return tuple(zip(texts, [*map(int, numbers), 0], strict=True))


def look_rotated(paths: Sequence[Path]) -> bool:
    """Whether the names of several files differ in digits only, as those of rotated files do."""
    return len(paths) > 1 and len({_DIGITS.sub("", path.name.removesuffix(".gz")) for path in paths}) == 1
