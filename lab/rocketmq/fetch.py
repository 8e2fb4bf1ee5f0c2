"""Artefacts of Apache RocketMQ: fetched once with Maven into a cache, and proven to be the pinned ones.

`artefacts/NAME.txt` pins what a release consists of: one line for every jar, its SHA-256 and its name, as
`sha256sum` writes them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.errors import LabError, NotInstalledError

HERE = Path(__file__).resolve().parent
ARTEFACTS = HERE / "artefacts"
CACHE_VARIABLE = "REPLISPEC_SUBJECTS"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
# Of these releases there are some jars alone: whose others they run with, and the modules that there are.
PARTIAL: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "5.5.1": ("5.5.0", ("common", "controller", "remoting")),
}
# Of these there is the client alone, or with it the tools: no controller exists. By the module that has all.
CLIENTS: Mapping[str, str] = {"4.9.8": "tools", "5.0.0-PREVIEW": "client"}
FETCH_S_MAXIMUM = 900
LINES_SHOWN = 3


def cache() -> Path:
    """The folder that holds what was fetched: REPLISPEC_SUBJECTS, or a place in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "replispec" / "subjects"


def pins(name: str) -> dict[str, str]:
    """SHA-256 of every jar of a release, by file name. Raises LabError for one that is not pinned."""
    try:
        lines = (ARTEFACTS / f"{name}.txt").read_text().splitlines()
    except FileNotFoundError:
        there = ", ".join(sorted(path.stem for path in ARTEFACTS.glob("*.txt")))
        raise LabError(f"{name} is not pinned: there are {there}") from None
    return {jar: digest for digest, jar in (line.split() for line in lines)}


def jars(name: str) -> Path:
    """The folder of the release's jars. Raises NotInstalledError when one is missing."""
    place = cache() / name
    if not all((place / jar).is_file() for jar in pins(name)):
        raise NotInstalledError(f"not installed: run python -m lab.subjects {name} fetch")
    return place


def fetch_apache(name: str, release: str) -> Path:
    """Fetch what is missing, prove that it is what is pinned, and return its folder.

    Needs the network only when something is missing. Raises NotInstalledError without Maven, LabError when
    Maven fails or an artefact is not the pinned one.
    """
    place, pinned = cache() / name, pins(name)
    if _wrong(place, pinned):
        _download(place, release)
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


def _download(place: Path, release: str) -> None:
    """Replace the folder by a new copy, made beside it, so that a failure leaves nothing half-done."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NotInstalledError("mvn is missing: install Maven (Debian, Ubuntu: apt-get install maven)")
    place.parent.mkdir(parents=True, exist_ok=True)
    whole, replaced = PARTIAL.get(release, (release, ()))
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as fresh:
        copy = Path(fresh) / "jars"
        quiet, out = (maven, "--quiet", "--batch-mode"), f"-DoutputDirectory={copy}"
        wanted = HERE / ("client.pom.xml" if release in CLIENTS else "pom.xml")
        chosen = ("--file", str(wanted), f"-Drelease={whole}", "-DincludeScope=runtime")
        of_client = (f"-Dmodule={CLIENTS[release]}",) if release in CLIENTS else ()
        run_quietly([*quiet, f"{PLUGIN}:copy-dependencies", *chosen, *of_client, out])
        for module in replaced:
            (copy / f"rocketmq-{module}-{whole}.jar").unlink(missing_ok=True)
            artefact = f"-Dartifact=org.apache.rocketmq:rocketmq-{module}:{release}"
            run_quietly([*quiet, f"{PLUGIN}:copy", artefact, out])
        shutil.rmtree(place, ignore_errors=True)
        os.replace(copy, place)


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
