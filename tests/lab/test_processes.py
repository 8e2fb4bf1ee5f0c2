"""A process that was started here is ended here, whatever was known of its start."""

import os
import sys
from pathlib import Path

from lab.processes import StartedProcess, kill, spawn

LASTING = [sys.executable, "-c", "import signal; signal.pause()"]


def test_a_child_whose_start_could_not_be_read_is_ended(tmp_path: Path) -> None:
    known = spawn("child", LASTING, log=tmp_path / "log", variables=os.environ)
    try:
        unknown = StartedProcess("child", known.pid, "")
        assert unknown.alive
        kill([unknown])
        assert not known.alive
    finally:
        kill([known])
