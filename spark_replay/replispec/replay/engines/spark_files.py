"""Files by which the driver and tasks of Spark tell each other what they have made."""

from __future__ import annotations

import os
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any


def unfinished_file(path: Path) -> Path:
    """What a file is called until it is whole: a name of one process, skipped by readers of folders."""
    return path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")


def keep(path: Path, what: Any) -> None:
    """Let tasks read something; a task may be run again, or twice at once."""
    unfinished = unfinished_file(path)
    unfinished.write_bytes(pickle.dumps(what, 5))
    unfinished.replace(path)


def kept(path: Path) -> Any:
    """What was kept, for whoever alters it."""
    return pickle.loads(path.read_bytes())


@lru_cache(maxsize=2)
def shared(path: Path) -> Any:
    """What was kept, for those who only read it: a worker reads it once."""
    return kept(path)
