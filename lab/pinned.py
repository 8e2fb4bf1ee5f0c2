"""Programs that others publish: fetched once with Maven into a cache, and proven to be the pinned ones.

`NAME.txt` in a folder of artefacts pins what one consists of: a line for every jar, its SHA-256 and its name,
as `sha256sum` writes them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.errors import LabError, NotInstalledError

CACHE_VARIABLE = "REPLISPEC_SUBJECTS"
FETCH_S_MAXIMUM = 900
LINES_SHOWN = 3


def cache() -> Path:
    """The folder that holds what was fetched: REPLISPEC_SUBJECTS, or a place in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "replispec" / "subjects"


def pinned_jars(artefacts: Path, name: str) -> dict[str, str]:
    """SHA-256 of every jar, by file name. Raises LabError for what is not pinned."""
    try:
        lines = (artefacts / f"{name}.txt").read_text().splitlines()
    except FileNotFoundError:
        there = ", ".join(sorted(path.stem for path in artefacts.glob("*.txt")))
        raise LabError(f"{name} is not pinned: there are {there}") from None
    return {jar: digest for digest, jar in (line.split() for line in lines)}


def fetched_jars(artefacts: Path, name: str) -> Path:
    """The folder of the jars. Raises NotInstalledError when one is missing."""
    place = cache() / name
    if not all((place / jar).is_file() for jar in pinned_jars(artefacts, name)):
        raise NotInstalledError(f"not installed: run python -m lab.subjects {name} fetch")
    return place


def fetch_pinned(artefacts: Path, name: str, copy: Callable[[list[str], Path], object]) -> Path:
    """Fetch what is missing, prove that it is what is pinned, and return its folder.

    `copy` is given the beginning of a command of Maven and the folder that is to hold the jars; it is called
    only when something is missing. Raises NotInstalledError without Maven, LabError when Maven fails or an
    artefact is not the pinned one.
    """
    place, pinned = cache() / name, pinned_jars(artefacts, name)
    if _wrong(place, pinned):
        _download(place, copy)
        if wrong := _wrong(place, pinned):
            raise LabError(f"{name}: {len(wrong)} of {len(pinned)} jars are not the pinned ones: {wrong[0]}")
    return place


def _wrong(place: Path, pinned: Mapping[str, str]) -> list[str]:
    """Jars that are missing, altered, or there although no pin names them."""
    extra = {path.name for path in place.glob("*.jar")} - set(pinned)
    return sorted(extra | {jar for jar, digest in pinned.items() if _digest(place / jar) != digest})


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _download(place: Path, copy: Callable[[list[str], Path], object]) -> None:
    """Replace the folder by a new copy, made beside it, so that a failure leaves nothing half-done."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NotInstalledError("mvn is missing: install Maven (Debian, Ubuntu: apt-get install maven)")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as fresh:
        made = Path(fresh) / "jars"
        copy([maven, "--quiet", "--batch-mode"], made)
        shutil.rmtree(place, ignore_errors=True)
        os.replace(made, place)


def run_quietly(command: list[str]) -> None:
    """Run an installer; its first lines are shown when it fails. Raises LabError."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=FETCH_S_MAXIMUM,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{Path(command[0]).name} took more than {FETCH_S_MAXIMUM} s") from error
    if done.returncode:
        said = " ".join(line.strip() for line in done.stdout.splitlines()[:LINES_SHOWN])
        raise LabError(f"{Path(command[0]).name} failed: {said}")


def java(program: str = "java") -> str:
    """A program of the JDK: that of JAVA_HOME, else the one on PATH. Raises NotInstalledError."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/{program}" if home else program)
    if found is None:
        where = f"JAVA_HOME is {home}, which holds no bin/{program}" if home else f"{program} is missing"
        raise NotInstalledError(f"{where}: install a JDK 17 (apt-get install openjdk-17-jdk-headless)")
    return found
