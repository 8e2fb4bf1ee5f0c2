"""Counts a checkout: lines by room, modules that know a family, circles of imports.

`python -m tests.house.count [CHECKOUT]`: this one when none is named, so that two states can be compared.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.house.circles import circles, graph, of_packages
from tests.house.families import knows_a_family, of_a_family
from tests.house.tree import LEFT_BEHIND, ROOT

BESIDE = ("lab", "benchmarks", "tests")


def python_files(folder: Path) -> Iterator[Path]:
    """Every Python file below a folder."""
    for path in sorted(folder.rglob("*.py")):
        if not LEFT_BEHIND.intersection(path.parts):
            yield path


def lines(paths: list[Path]) -> int:
    """How many lines files have together."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def main() -> None:
    """Print the counts of the checkout that is named."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    project = tomllib.loads((root / "pyproject.toml").read_text())
    rooms = tuple(project["tool"]["hatch"]["build"]["dev-mode-dirs"])
    print(f"{'room':<20} {'modules':>7} {'lines':>7} {'of families':>11} {'know a family':>13}")
    modules: dict[str, Path] = {}
    totals = [0, 0, 0, 0]
    for room in (*rooms, *BESIDE):
        paths = list(python_files(root / room))
        own = [path for path in paths if of_a_family(path.relative_to(root))]
        neutral = [path for path in paths if path not in own]
        knowing = (
            []
            if room == "generated" or room == "tests"
            else [p for p in neutral if any(knows_a_family(p.read_text()))]
        )
        row = [len(paths), lines(paths), lines(own), len(knowing)]
        print(f"{room:<20} {row[0]:>7} {row[1]:>7} {row[2]:>11} {row[3]:>13}")
        if room not in ("generated", "tests"):
            totals = [total + each for total, each in zip(totals, row, strict=True)]
        if room in rooms:
            for path in paths:
                inside = path.relative_to(root / room).with_suffix("").parts
                modules[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = path
    print(f"{'written by people':<20} {totals[0]:>7} {totals[1]:>7} {totals[2]:>11} {totals[3]:>13}")
    edges = graph(modules)
    for what, found in (("modules", edges), ("packages", of_packages(edges, modules))):
        groups = circles(found)
        print(f"circles of {what}: {len(groups)}")
        for group in groups:
            print(f"  {', '.join(group)}")


if __name__ == "__main__":
    main()
