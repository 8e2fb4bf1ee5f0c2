"""What went wrong, as one line a user can act on; faults of our own keep their traceback."""

import errno

import click

from replispec.runtime.primitives.visible import visible

EXIT_UNUSABLE = 2
LINE_CHARACTERS_MAXIMUM = 500
# A capture that is mapped keeps its file open, and all files of a rotation are mapped at once.
NO_DESCRIPTOR = frozenset((errno.EMFILE, errno.ENFILE))
# What a disk says that takes no more; a write that is refused does not name its file.
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def complain(text: str) -> None:
    """One line on standard error, whatever is in the names that it tells."""
    click.echo(f"replispec: {visible(text, LINE_CHARACTERS_MAXIMUM)}", err=True)


def describe(error: Exception) -> str | None:
    """`FILE: reason (at byte N)` for input that cannot be used, None for an error that is ours."""
    from replispec.replay.capture.records import CaptureError

    if isinstance(error, CaptureError):
        return str(error)
    if isinstance(error, OSError) and error.errno in NO_DESCRIPTOR:
        return "more files at once than this system lets a process open: raise the limit (ulimit -n)"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f"what was to be written does not fit: {error.strerror}"
    return None
