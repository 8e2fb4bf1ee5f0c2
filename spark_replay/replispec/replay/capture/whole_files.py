"""Files that are there wholly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes its name, and the place of an older one, when the block ends without fault.

    What is no ordinary file (a pipe, a device) is written as it is. Raises OSError, which names the file.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        if error.filename is None or Path(error.filename) != unfinished:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        unfinished.unlink(missing_ok=True)
