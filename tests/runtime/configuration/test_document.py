"""docs/configuration.md is what the table says."""

import os

from replispec.runtime.configuration.document import document
from replispec.runtime.rocketmq import parameters
from tests.house.tree import ROOT

PAGE = ROOT / "docs/configuration.md"


def test_the_page_is_fresh() -> None:
    if os.environ.get("REWRITE"):
        PAGE.write_text(document())
    assert PAGE.read_text() == document(), "REWRITE=1 make check ARGS=tests/runtime/configuration"


def test_every_parameter_has_one_row_or_is_named_as_without_effect() -> None:
    rows, _, idle = document().partition("without effect\n")
    for one in parameters.ALL:
        assert rows.count(f"\n| `{one.name}` |") == (one.source != "idle"), one.name
        assert (f"`{one.name}`" in idle) == (one.source == "idle"), one.name
