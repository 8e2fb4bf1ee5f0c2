"""Archives of the classes that a role of Apache RocketMQ loads: with one a JVM starts with half of the CPU.

They are made once, from a name server, a controller and a broker that start and end in order, and lie beside
the jars. A JVM of another build than the one that made them is another file; one that cannot use its archive
goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import signal
import zipfile
from pathlib import Path

from lab import poll
from lab.errors import LabError
from lab.pinned import cache
from lab.processes import StartedProcess

FOLDER = "class-archives"
# A machine under load writes for minutes; a process that was killed meanwhile leaves half of a file.
WRITTEN_S_MAXIMUM = 300.0


def archive(release: str, role: str, jvm: str) -> Path:
    """Where the classes of a role are, once they were recorded. `jvm` is the program of the JVM."""
    program = Path(jvm).resolve()
    build = hashlib.sha256(f"{program} {program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    return cache() / FOLDER / f"{release}-{role}-{build}.jsa"


def option(made: Path) -> list[str]:
    """What a JVM is told to use it; nothing when it was not made."""
    return [f"-XX:SharedArchiveFile={made}"] if made.is_file() else []


def recording(made: Path) -> list[str]:
    """What a JVM is told to write one when it ends."""
    made.parent.mkdir(parents=True, exist_ok=True)
    return [f"-XX:ArchiveClassesAtExit={_unfinished(made)}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def finish(process: StartedProcess, made: Path) -> None:
    """End a process that records, in order, and keep what it wrote. Raises LabError when it wrote nothing."""
    os.kill(process.pid, signal.SIGTERM)
    poll.until(
        lambda: None if process.alive else True,
        waiting_for=f"the classes of {process.name}",
        patience_s=WRITTEN_S_MAXIMUM,
    )
    if not _unfinished(made).is_file():
        raise LabError(f"{process.name} wrote no archive of its classes")
    _unfinished(made).replace(made)


def packed(file: Path) -> Path:
    """A jar with this one file: what stands on the class path of an archive must be jars."""
    place = cache() / FOLDER / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.jar"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(fresh, "w") as jar:
            jar.write(file, file.name)
        fresh.replace(place)
    return place


def _unfinished(made: Path) -> Path:
    return made.with_name(f"{made.name}.{os.getpid()}")
