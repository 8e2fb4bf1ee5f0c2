"""Packets of an interface while a cluster runs, as any capture tool writes them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import NotInstalledError
from lab.forward import OUTSIDE

NAME = "dumpcap"
SETTLE_S = 0.5
START_S_MAXIMUM = 10.0
BUFFER_MIB = 64


@contextmanager
def captured(cluster: Cluster, path: Path, *, interface: str = "lo", name: str = NAME) -> Iterator[None]:
    """Write what the cluster's processes say to each other to this file, in a process of this name. Needs
    dumpcap and the right to capture. Raises NotInstalledError without the one, LabError without the other."""
    passed_on = "".join(f" and not host {each}" for each in OUTSIDE)
    which = f"tcp portrange {cluster.ports[0]}-{cluster.ports[-1]}{passed_on}"
    program = shutil.which(NAME)
    if program is None:
        raise NotInstalledError(f"{NAME} is missing: install it (Debian, Ubuntu: apt-get install tshark)")
    options = ("-q", "-i", interface, "-B", str(BUFFER_MIB), "-f", which, "-w", str(path.absolute()))
    cluster.launch(name, [program, *options])

    def writes() -> bool | None:
        return (path.exists() and path.stat().st_size > 0) or None

    cluster.until(writes, "a capture that begins", patience_s=START_S_MAXIMUM)
    yield
    # The last packets are on their way from the kernel.
    time.sleep(SETTLE_S)
    cluster.stop(name)
