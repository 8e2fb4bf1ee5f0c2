"""`replispec admin inspect` of a large store says how far it is, where that is wanted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from replispec.runtime.rocketmq.log import checking
from tests.cli.test_check_store import store_in


def inspected(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(
        command_line, ["admin", "inspect", str(folder), *options], standalone_mode=False
    )


def test_each_tenth_of_two_readings_is_told_and_nothing_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_in(tmp_path)
    monkeypatch.setattr(checking, "READ_AT_ONCE", 256)
    found = inspected(tmp_path, "--progress")
    told = [
        (int(done), int(total))
        for done, total in re.findall(r": (\d+) of (\d+)$", found.stderr, re.MULTILINE)
    ]
    assert 3 < len(told) <= 10
    assert told == sorted(told)
    # Two files of 4,096 bytes, each read twice.
    assert {total for _, total in told} == {16_384}
    assert told[-1][0] > 8_192


def test_nothing_is_told_where_nobody_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_in(tmp_path)
    monkeypatch.setattr(checking, "READ_AT_ONCE", 256)
    found = inspected(tmp_path)
    assert found.return_value == 0
    assert found.stderr == ""
    assert found.stdout == inspected(tmp_path, "--progress").stdout
