"""The captures that a command is given: files, or standard input; and moments on the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from replispec.cli.piped import FirstBytes, copy_input

STANDARD_INPUT = Path("-")
INPUT_NAME = "standard-input"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What can be a moment of a capture, as int64 nanoseconds.
YEARS = range(1970, 2262)


Fetch = Callable[[str, Path], list[Path]]
"""Copies the captures at an address of a store into a folder, and says where they are."""


@contextmanager
def given(paths: Sequence[Path | str], fetch: Fetch | None = None) -> Iterator[list[Path]]:
    """The files, in the order in which they were given, as long as the block lasts.

    Standard input (`-`) is read to its end, or to Ctrl-C, into a file, addresses (texts) are fetched.
    """
    if STANDARD_INPUT not in paths and all(isinstance(path, Path) for path in paths):
        yield [Path(path) for path in paths]
        return
    with tempfile.TemporaryDirectory(prefix="replispec-") as folder:
        found: list[Path] = []
        for path in paths:
            if isinstance(path, str):
                if fetch is None:
                    raise ValueError("nothing fetches captures from a store here")
                found += fetch(path, Path(folder))
            elif path == STANDARD_INPUT:
                found.append(Path(folder) / INPUT_NAME)
                with found[-1].open("wb") as file:
                    copy_input(file, _captures_alone())
            else:
                found.append(path)
        yield found


def _captures_alone() -> FirstBytes:
    """Says at once that standard input is no capture: it may come for days. Raises CaptureError."""
    from replispec.replay.capture.files import MAGIC_BYTES, may_begin
    from replispec.replay.capture.records import CaptureError

    def begins(magic: bytes) -> None:
        if not may_begin(magic):
            said = f"no packet capture: it starts with {magic.hex()}; tcpdump writes one with -w -"
            raise CaptureError(INPUT_NAME, 0, said)

    return FirstBytes(MAGIC_BYTES, begins)


def unusable(paths: Sequence[Path]) -> list[str]:
    """Why each file is no capture, a line each, when none of them is one; else nothing."""
    from replispec.cli.failures import describe
    from replispec.replay.capture.files import GZIP_MAGIC, open_capture
    from replispec.replay.capture.records import CaptureError

    said = []
    for path in paths:
        try:
            with path.open("rb") as file:
                packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            if packed:
                return []
            with open_capture(path):
                return []
        except (CaptureError, OSError) as error:
            said.append(describe(error) or str(error))
    return said


class CapturePlace(click.ParamType[Path | str]):
    """A file, or as text the address of captures in a store."""

    name = "path"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,  # noqa: ARG002 (click's)
        ctx: click.Context | None,  # noqa: ARG002
    ) -> Path | str:
        """See click.ParamType. A path would lose one of the slashes of an address."""
        from replispec.replay.engines.cluster import is_url

        text = str(value)
        return text if is_url(text) else Path(text)


class Moment(click.ParamType[int]):
    """A moment in UTC, as ISO 8601 or as reports show it; int64 nanoseconds since 1970."""

    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click.ParamType."""
        if isinstance(value, int):
            return value
        text = str(value).strip().removesuffix("UTC").strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{value!r} is no moment, such as 2026-11-21T01:07:29.147 (UTC)", param, ctx)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        if moment.year not in YEARS:
            self.fail(f"{value!r} is no moment of a capture", param, ctx)
        return (moment - EPOCH) // timedelta(microseconds=1) * 1000
