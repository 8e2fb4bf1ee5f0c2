"""What depends on the release of a peer: which reader takes its request, and what it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.python.binding_words import BindingWords, snake
from replispec.compiler.emit.python.tree import ABC, PRIMITIVES, TYPING, Constant, Names
from replispec.compiler.model.binding import Source
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import VersionRange

RELEASES = Names(f"{PRIMITIVES}.releases")
PARAMETER = f"release: {RELEASES.Release} | None = None"
"""How a function is told of the release of a peer; without it, it is the newest."""


def release_parameter(*, is_used: bool) -> str:
    """The last parameter of what reads or answers peers: who calls it need not know whether it matters."""
    return PARAMETER if is_used else f"_{PARAMETER}"


def releases_text(versions: VersionRange) -> str:
    """The releases in Python."""
    return f'{RELEASES.Releases}("{versions.implementation}", {versions.first!r}, {versions.last!r})'


def readers_of(sources: Sequence[Source]) -> dict[str, list[Source]]:
    """The functions that read requests, by name: one for each message, or for each range of its releases."""
    groups: dict[tuple[str, VersionRange | None], list[Source]] = {}
    for each in sources:
        groups.setdefault((each.header, each.releases), []).append(each)
    found: dict[str, list[Source]] = {}
    for (header, _), group in groups.items():
        name = f"_{snake(header)}"
        found[name if name not in found else f"{name}_{len(found)}"] = group
    return found


def request_tables(
    readers: Mapping[str, Sequence[Source]], kind: str, machine: MachineSpec, words: BindingWords
) -> Iterator[Constant]:
    """REQUESTS, and RELEASED where several readers share a code; those of the newest releases stand last."""
    by_code: dict[str, list[tuple[VersionRange | None, str]]] = {}
    for name, sources in readers.items():
        for code in words.codes(sources[0].header):
            by_code.setdefault(code, []).append((sources[0].releases, name))
    rows = []
    for code, found in by_code.items():
        newest = (name for releases, name in found if releases is None or releases.last is None)
        rows.append(f"{code}: {next(newest, found[-1][1])},")
    annotated = f"{TYPING.Final}[{ABC.Mapping}[int, {kind}]]"
    yield Constant("REQUESTS", f"{{{' '.join(rows)}}}", annotated, "How each request is read, by its code.")
    if not machine.bindings.has_releases:
        return
    rows = []
    for code, found in by_code.items():
        choices = [f"({releases_text(releases)}, {name})" for releases, name in found if releases is not None]
        if choices:
            rows.append(f"{code}: ({', '.join(choices)},),")
    annotated = f"{TYPING.Final}[{ABC.Mapping}[int, tuple[tuple[{RELEASES.Releases}, {kind}], ...]]]"
    about = "How requests are read that depend on the release of whoever asks."
    yield Constant("RELEASED", f"{{{' '.join(rows)}}}", annotated, about)


def chosen_reader(machine: MachineSpec) -> list[str]:
    """The lines that find the reader of a request."""
    if not machine.bindings.has_releases:
        return ["read = REQUESTS.get(code)"]
    return [
        "choices = RELEASED.get(code)",
        f"read = REQUESTS.get(code) if choices is None else {RELEASES.of_release}(choices, release)",
    ]
