"""Whatever ends a program that plays a cluster, none of its processes is left."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes import StartedProcess
from tests.house.tree import ROOT

PROGRAM = """
import sys
from pathlib import Path
from lab.cluster import Cluster

with Cluster(Path(sys.argv[1])) as cluster:
    child = cluster.launch("child", [sys.executable, "-c", LASTING])
    print(child.pid, child.started, flush=True)
    if sys.argv[2] == "fails":
        raise SystemExit(3)
    sys.stdin.read()
"""
LASTING = "import signal; signal.pause()"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None], ids=str)
def test_no_process_is_left_behind(ending: signal.Signals | None, tmp_path: Path) -> None:
    program = PROGRAM.replace("LASTING", repr(LASTING))
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), "fails" if ending is None else "waits"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        text=True,
    ) as player:
        assert player.stdout is not None
        pid, started = player.stdout.readline().split()
        child = StartedProcess("child", int(pid), started)
        if ending is not None:
            assert child.alive
            player.send_signal(ending)
        assert player.wait(timeout=60) != 0
    assert not child.alive
