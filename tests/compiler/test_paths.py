"""Layouts of paths: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.family import compile_family
from replispec.compiler.model.declared import Declared
from replispec.compiler.model.message import SpecificationError
from tests.compiler.small_family import small_model

FILE = "paths/small/store.yaml"
GOOD = """\
layout: store
about: Where it is kept.
releases: other@2.0..
paths:
  mark:
    path: /marks/{name}/{number:number}/{place:4}
    about: A mark.
    holds: Mark
    life: EPHEMERAL_SEQUENTIAL
    made_by: [CALLER]
    removed_by: [CALLEE]
    changed_by: {CALLER: by version, CALLEE: at any time}
    watched_by: {CALLEE: children}
"""


def compiled(folder: Path, text: str) -> dict[str, str]:
    """What the compiler makes of the small family with this layout."""
    path = folder / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text)
    model = small_model()
    model.declared = Declared("families/small.yaml", parties={"CALLER": "calls", "CALLEE": "is called"})
    return {name: data.decode() for name, data in compile_family(model, folder).items()}


def test_a_path_is_a_template_and_a_row(tmp_path: Path) -> None:
    files = compiled(tmp_path, GOOD)
    module = files["replispec/wire/small/paths.py"]
    assert '(("name", None), ("number", 0), ("place", 4))' in module
    assert 'PATHS: dict[str, tuple[PathTemplate, ...]] = {"store": (STORE_MARK,)}' in module
    row = (
        "| `/marks/{name}/{number:number}/{place:4}` | Mark | ephemeral, sequential | CALLER |"
        " CALLER by version, CALLEE at any time | CALLEE (children) | CALLEE | A mark. |  |"
    )
    assert row in files["docs/small/paths.md"].splitlines()
    assert "## store (other@2.0..)" in files["docs/small/paths.md"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("layout: store", "layout: Store", "'Store' is no name. use small letters"),
        ("  mark:", "  Mark:", "'Mark' is no name. use small letters"),
        ("{place:4}", "{place:x}", r"{place:x} is no field of a path, or stands twice. write {topic}"),
        ("{place:4}", "{name}", r"{name} is no field of a path, or stands twice"),
        ("{place:4}", "{class}", "'class' is a word of Python"),
        ("/{place:4}", "/{place:4}}", "has a bracket too many"),
        ("/{place:4}", "{place:4}", "has a bracket too many"),
        ("holds: Mark", "holds: Stain", "no message is named 'Stain'. name one of spec/proto"),
        ("life: EPHEMERAL_SEQUENTIAL", "life: SHORT", "'SHORT' is not known here. write PERSISTENT or"),
        ("made_by: [CALLER]", "made_by: [CALLR]", "declares no party 'CALLR'. declare it below parties"),
        ("CALLER: by version", "CALLER: somehow", "'somehow' is not known here. write by version or"),
        ("CALLEE: children", "CALLEE: all", "'all' is not known here. write data or exists or children"),
        ("    removed_by", "    remove_by", "remove_by"),
    ],
)
def test_a_path_that_cannot_be_meant_is_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(SpecificationError) as refusal:
        compiled(tmp_path, GOOD.replace(old, new))
    assert says in str(refusal.value)
    assert str(refusal.value).startswith(f"{FILE}:")


def test_two_layouts_may_not_have_a_path_of_one_name(tmp_path: Path) -> None:
    other = tmp_path / "paths/small/other.yaml"
    other.parent.mkdir(parents=True)
    other.write_text(GOOD)
    (tmp_path / FILE).unlink(missing_ok=True)
    model = small_model()
    model.declared = Declared("families/small.yaml", parties={"CALLER": "calls", "CALLEE": "is called"})
    (tmp_path / FILE).write_text(GOOD)
    with pytest.raises(SpecificationError, match=r"the path mark stands twice\. see paths/small/other\.yaml"):
        compile_family(model, tmp_path)
