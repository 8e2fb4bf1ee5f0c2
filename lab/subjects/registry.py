"""All subjects by name."""

from __future__ import annotations

from lab.errors import UsageError
from lab.subjects.apache import Apache
from lab.subjects.fetch import ARTEFACTS
from lab.subjects.ours import OURS
from lab.subjects.rust import RustController
from lab.subjects.subject import Subject

RUST_RELEASE = "1.0.0"


def subjects() -> dict[str, Subject]:
    """Every subject by its name, in order: a release of Apache RocketMQ is one whose jars are pinned."""
    pinned = [path.stem.removeprefix(f"{Apache.implementation}-") for path in ARTEFACTS.glob("*.txt")]
    every: list[Subject] = [*map(Apache, pinned), OURS, RustController(RUST_RELEASE)]
    return {each.name: each for each in sorted(every, key=lambda each: each.name)}


def subject(name: str) -> Subject:
    """The subject of this name. Raises UsageError, with the names that there are."""
    every = subjects()
    if name not in every:
        raise UsageError(f"no subject {name!r}: there are {', '.join(every)}")
    return every[name]
