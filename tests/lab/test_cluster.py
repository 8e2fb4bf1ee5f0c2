"""Whatever ends a program that plays a cluster, no process of it is left and nothing of others is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
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


def test_a_signal_while_the_processes_end_is_heard_when_they_have_ended(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Cluster(tmp_path) as cluster:  # noqa: PT012
        child = cluster.launch("child", [sys.executable, "-c", ENDS_ITS_PARENT, str(os.getpid())])
        cluster.until(lambda: (tmp_path / "log" / "ready").exists() or None, "a child that listens")
    assert not child.alive


ENDS_ITS_PARENT = """
import os, pathlib, signal, sys

def ended(number, frame):
    os.kill(int(sys.argv[1]), signal.SIGINT)
    sys.exit()

signal.signal(signal.SIGTERM, ended)
pathlib.Path("ready").touch()
signal.pause()
"""


def test_what_no_earlier_run_left_is_not_removed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(LabError, match=r"mine holds what no earlier run left there"):
        Cluster.remove_earlier(mine)
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_what_an_earlier_run_left_is_ended_and_removed(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        child = cluster.launch("child", [sys.executable, "-c", LASTING])
        cluster.leave_running()
    lived = child.alive
    Cluster.remove_earlier(tmp_path / "cluster")
    assert (lived, child.alive) == (True, False)
    assert not (tmp_path / "cluster").exists()
    Cluster.remove_earlier(tmp_path / "cluster")


@pytest.mark.parametrize("module", ["lab.demo", "lab.kills", "lab.rocketmq.kills_queues"])
def test_a_place_that_holds_other_things_keeps_them(module: str, tmp_path: Path) -> None:
    place = tmp_path / "cluster" if module == "lab.demo" else tmp_path
    place.mkdir(exist_ok=True)
    (place / "thesis.txt").write_text("years of work")
    command = [sys.executable, "-m", module, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "holds what no earlier run left there" in done.stderr
    assert (place / "thesis.txt").exists()
