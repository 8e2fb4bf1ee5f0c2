"""A replay of the local engine imports no pandas, and one on Spark may."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from replispec.cli import pandas_unused
from tests.cli.command import CAPTURES

PROGRAM = """
import atexit, sys
atexit.register(lambda: print("pandas" in sys.modules, file=sys.stderr))
from replispec.cli.main import main
main()
"""


def test_a_local_replay_imports_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="not installed with the local engine alone")
    capture = CAPTURES / "a_first_start.pcap"
    line = [
        sys.executable,
        "-c",
        PROGRAM,
        "replay",
        str(capture),
        "--out",
        str(tmp_path),
        "--engine",
        "local",
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "False\n")


def test_what_was_imported_stays_and_what_was_left_out_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setitem(sys.modules, pandas_unused.NAME, sys)
    pandas_unused.leave_out()
    assert __import__(pandas_unused.NAME) is sys
    monkeypatch.delitem(sys.modules, pandas_unused.NAME)
    with pytest.raises(ImportError, match="for the local engine"):
        __import__(pandas_unused.NAME)
    known = len(sys.meta_path)
    pandas_unused.let_in()
    assert len(sys.meta_path) == known - 1
