"""generated/ is what the specification gives, now and every time."""

from __future__ import annotations

from pathlib import Path

from replispec.compiler.generate import OWNED, generate
from tests.compiler.specification import ROOT, SPEC


def _committed() -> dict[str, bytes]:
    generated = ROOT / "generated"
    files = [path for owned in OWNED for path in (generated / owned).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(generated)): path.read_bytes()
        for path in files
        if "__pycache__" not in path.parts
    }


def test_the_committed_output_is_what_the_specification_gives() -> None:
    fresh, committed = generate(SPEC), _committed()
    assert sorted(fresh) == sorted(committed), "run `make generate`"
    stale = [name for name in fresh if fresh[name] != committed[name]]
    assert stale == [], "run `make generate`"


def test_the_output_does_not_depend_on_where_the_specification_lies(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(SPEC)
    assert generate(tmp_path / "elsewhere") == generate(SPEC)
