"""Packets of the loopback interface while a cluster runs, as any capture tool writes them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.cluster import Cluster, LabError

SETTLE_S = 0.5
START_S_MAXIMUM = 10.0
BUFFER_MIB = 64


@contextmanager
def captured(cluster: Cluster, path: Path) -> Iterator[None]:
    """Write what the cluster's processes say to each other to this file. Needs dumpcap or tcpdump, and the
    right to capture. Raises LabError when there is none."""
    which = f"tcp portrange {cluster.ports[0]}-{cluster.ports[-1]}"
    program = shutil.which("dumpcap")
    if program is None:
        raise LabError("dumpcap is missing: install it (Debian, Ubuntu: apt-get install tshark)")
    command = [program, "-q", "-i", "lo", "-B", str(BUFFER_MIB), "-f", which, "-w", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _wait_for(path, process)
        yield
        time.sleep(SETTLE_S)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + START_S_MAXIMUM
    while not (path.exists() and path.stat().st_size):
        if process.poll() is not None:
            raise LabError(f"no capture: {(process.stderr.read() if process.stderr else '').strip()[-300:]}")
        if time.monotonic() > deadline_s:
            raise LabError("no capture: dumpcap wrote nothing")
        time.sleep(0.05)
