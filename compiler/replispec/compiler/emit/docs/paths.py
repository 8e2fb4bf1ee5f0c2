"""The Markdown page of a family's paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.path import PathSpec

_HEAD = (
    "path",
    "holds",
    "there",
    "made by",
    "changed by",
    "watched by",
    "removed by",
    "what it is",
    "clauses",
)


def paths_document(paths: Mapping[str, PathSpec], sources: Mapping[str, bytes]) -> str:
    """The page with a table for each layout."""
    lines = [*banner(sources), "# Paths", ""]
    for layout in dict.fromkeys(each.layout for each in paths.values()):
        own = [each for each in paths.values() if each.layout == layout]
        releases = f" ({own[0].versions})" if own[0].versions else ""
        lines += [f"## {layout}{releases}", "", *table(_HEAD, [tuple(_row(each)) for each in own]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _row(path: PathSpec) -> Iterator[str]:
    yield f"`{path.template}`"
    yield path.holds or "nothing"
    yield path.life.lower().replace("_", ", ")
    yield _listed(path.made_by)
    yield _listed([f"{party} {how}" for party, how in path.changed_by])
    yield _listed([f"{party} ({what})" for party, what in path.watched_by])
    yield _listed(path.removed_by)
    yield path.about
    yield ", ".join(path.clauses)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)
