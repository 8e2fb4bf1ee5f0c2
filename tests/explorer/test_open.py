"""Errors that the explorer finds in the specification and that are not mended yet, each with its story.

Whoever mends one moves it to test_mended.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from replispec.cli.main import command_line


def test_a_request_of_a_life_before_changes_the_set_behind_the_back_of_a_master_that_began_again(
    tmp_path: Path,
) -> None:
    """It resumes its masterEpoch and knows nothing of what it asked: late, an expansion is still decided."""
    out = tmp_path / "found.json"
    asked = ["--set", "crashes=1", "--set", "lost=0", "--json", str(out)]
    ended = CliRunner().invoke(command_line, ["spec", "explore", "sync_state_set", *asked])
    assert "BROKEN" in ended.output
    stories = json.loads(out.read_text("utf-8"))["stories"]
    assert [(each["promise"], len(each["steps"])) for each in stories] == [("counts_with_the_set", 9)]
