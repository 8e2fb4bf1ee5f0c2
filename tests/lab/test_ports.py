"""Clusters side by side have ports of their own, with those that a broker takes unasked."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lab import ports
from lab.cluster import Cluster
from lab.errors import LabError
from lab.ports import claimed_ports
from tests.house.tree import ROOT

FIRST, MORE = 11_200, 40
BROKER = (-2, 0, 1)
"""A broker's port with the one that Java's listens to unasked, and that of replication."""
HOLDS = """
import sys
from pathlib import Path
from lab.cluster import Cluster
with Cluster(Path(sys.argv[1])) as cluster:
    print(cluster.ports[0], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty ports for all."""
    monkeypatch.setattr(ports, "FIRST", FIRST)
    monkeypatch.setattr(ports, "LAST", FIRST + 40)
    monkeypatch.setattr(ports, "TRIES_MAXIMUM", 2000)


@pytest.mark.usefixtures("few")
def test_brokers_that_do_not_listen_yet_are_never_given_ports_of_each_other() -> None:
    claims, used = [], list[int]()
    with suppress(LabError):
        for _ in range(MORE):
            found, claimed = claimed_ports(BROKER)
            claims.append(claimed)
            used += found
    for each in claims:
        each.end()
    assert len(used) == len(set(used)) > len(BROKER)


def test_a_cluster_of_another_process_keeps_its_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "other")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as other:
        assert other.stdout is not None
        first = int(other.stdout.readline())
        monkeypatch.setattr(ports, "FIRST", first)
        monkeypatch.setattr(ports, "LAST", first + 1)
        with pytest.raises(LabError, match="no free ports"), Cluster(tmp_path / "mine"):
            pass
        other.communicate("")
    with Cluster(tmp_path / "mine") as mine:
        assert mine.ports[0] == first
