"""What a replay was made from and by: whoever finds a report later can make it again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from replispec.replay.report.model import InputFile, Provenance
from replispec.replay.tcp.rotation import Source, paths_of

# So much of a digest tells two specifications apart.
DIGEST_CHARACTERS = 16


def provenance(sources: Iterable[Source], command: str = "") -> Provenance:
    """The provenance of a replay of these captures; a file that cannot be read has no digest.

    `command`: the command line, if there was one.
    """
    return Provenance(
        version=software_version(),
        specification=specification_digest(),
        command=command,
        inputs=tuple(_input(path) for source in sources for path in paths_of(source)),
    )


def specification_digest() -> str:
    """The beginning of the SHA-256 of all names of the specification that was compiled in."""
    names = files("replispec.wire").joinpath("names.json").read_bytes()
    return hashlib.sha256(names).hexdigest()[:DIGEST_CHARACTERS]


def software_version() -> str:
    """The version of this replispec; `unknown` where it is not installed."""
    try:
        return version("replispec")
    except PackageNotFoundError:
        return "unknown"


def _input(path: Path) -> InputFile:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return InputFile(path.name, file.tell(), digest)
    except OSError:
        return InputFile(path.name, 0, "")
