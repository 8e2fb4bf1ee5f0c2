"""Every request says what it needs, or does not compile; what it needs is there."""

import shutil
from pathlib import Path

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.model.message import SpecificationError
from tests.house.tree import ROOT

FAMILY = "families/rocketmq.yaml"
CONTROLLER = "proto/replispec/rocketmq/v1/controller.proto"
CLEANING = 'need: {right: "ADMINISTRATOR"}  audited: true };\n  string cluster_name'


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (CONTROLLER, CLEANING, "};\n  string cluster_name", "does not say which right it needs"),
        (CONTROLLER, CLEANING, CLEANING.replace("ADMIN", "KING"), "declares no right 'KINGISTRATOR'"),
        (
            CONTROLLER,
            CLEANING,
            CLEANING.replace('TOR"', 'TOR"  of: "else"'),
            "'else', which is no field of it",
        ),
        (CONTROLLER, CLEANING, CLEANING.replace('TOR"', 'TOR"  when: "cluster_name"'), "is no flag of it"),
        (FAMILY, "  CONSUME: ", "  CONSUMED: ", "declares no right 'CONSUME'"),
    ],
    ids=["none", "unknown", "of nothing", "when no flag", "not declared"],
)
def test_what_a_request_needs_is_checked(tmp_path: Path, file: str, old: str, new: str, told: str) -> None:
    spec = Path(shutil.copytree(ROOT / "spec", tmp_path / "spec"))
    path = spec / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecificationError, match=told):
        generate(spec)
