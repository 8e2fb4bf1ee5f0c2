"""Where the compiler writes, it removes what it wrote itself and nothing else."""

from pathlib import Path

import pytest

from replispec.compiler.generate import MARK, generate, write
from tests.house.tree import ROOT

OURS = b"<!-- " + MARK + b" from spec -->\n"


def test_a_file_that_was_not_generated_is_never_removed(tmp_path: Path) -> None:
    write({"docs/ours.md": OURS}, tmp_path)
    written = tmp_path / "docs" / "by_hand.md"
    written.write_bytes(b"# Written by a person\n")
    with pytest.raises(FileExistsError, match=r"by_hand\.md was not generated"):
        write({"docs/new.md": OURS}, tmp_path)
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == ["by_hand.md", "ours.md"]


def test_what_was_generated_before_is_replaced_whole(tmp_path: Path) -> None:
    write({"docs/old.md": OURS, "replispec/wire/py.typed": b""}, tmp_path)
    write({"docs/new.md": OURS}, tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["new.md"]


def test_all_that_the_specification_makes_is_known_again(tmp_path: Path) -> None:
    write(generate(ROOT / "spec"), tmp_path)
    write({}, tmp_path)
    assert not list(tmp_path.iterdir())
