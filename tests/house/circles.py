"""Circles of imports, among modules and among packages."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.house.rules import imports

Graph = Mapping[str, set[str]]


def graph(files: Mapping[str, Path]) -> Graph:
    """Which module imports which, at any depth and for types alone too. `files`: modules by dotted name."""
    return {
        module: {
            found
            for _, name in imports(path.read_text())
            if (found := _module(name, files)) is not None and found != module
        }
        for module, path in files.items()
    }


def _module(name: str, known: Mapping[str, Path]) -> str | None:
    """The module that a dotted name is, or is in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


def of_packages(modules: Graph, files: Mapping[str, Path]) -> Graph:
    """The same by the packages that hold the modules; a package and one inside it do not count as two."""
    found: dict[str, set[str]] = {}
    for module, imported in modules.items():
        package = _package(module, files)
        others = {_package(each, files) for each in imported}
        found.setdefault(package, set()).update(each for each in others if not _nested(package, each))
    return found


def _nested(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _package(module: str, files: Mapping[str, Path]) -> str:
    return module if files[module].name == "__init__.py" else module.rpartition(".")[0]


def circles(edges: Graph) -> list[list[str]]:
    """The groups of which each member reaches each other; each group is sorted, and so is the list."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        open_.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
            if other in open_:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            at = open_.index(node)
            group = sorted(open_[at:])
            del open_[at:]
            if len(group) > 1:
                found.append(group)

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(found)


def shown(group: Iterable[str], edges: Graph) -> str:
    """A circle as a message tells it: each member with what it imports of the others."""
    members = set(group)
    return "; ".join(f"{each} -> {', '.join(sorted(edges[each] & members))}" for each in sorted(members))
