"""A family of its own with systems that nobody needs, compiled, and on the path while a test asks for it."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replispec.compiler.generate import generate, write
from tests.house.tree import ROOT

HERE = Path(__file__).parent
SYSTEMS = sorted(path.stem for path in (HERE / "systems").glob("*.yaml"))
_PLACES = {
    "shop.proto": "proto/replispec/lamps/v1/lamps.proto",
    "lamps.yaml": "families/lamps.yaml",
    "machines": "statemachines/lamps",
    "systems": "systems/lamps",
}


def written(spec: Path) -> None:
    """Write the specification of the family into a folder."""
    options = "proto/replispec/options"
    shutil.copytree(ROOT / "spec" / options, spec / options)
    for name, place in _PLACES.items():
        (spec / place).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy
        copy(HERE / name, spec / place)


@contextmanager
def on_the_path(generated: Path, family: str = "lamps") -> Iterator[None]:
    """The code of a family can be imported meanwhile."""
    path = list(sys.path)
    sys.path.insert(0, str(generated))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in [name for name in sys.modules if name.startswith(f"replispec.wire.{family}")]:
            del sys.modules[name]


@contextmanager
def compiled(folder: Path) -> Iterator[None]:
    """The family in a folder, compiled."""
    written(folder / "spec")
    write(generate(folder / "spec"), folder / "generated")
    with on_the_path(folder / "generated"):
        yield
