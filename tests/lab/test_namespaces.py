"""Hosts in network namespaces: whatever ends who made them, none is left; who may make none is told how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from lab import namespaces
from lab.errors import LabError, NotInstalledError
from lab.namespaces import LINK, Namespaces
from tests.house.tree import ROOT

CAN = os.geteuid() == 0 and all(map(shutil.which, namespaces.PROGRAMS))
needs_root = pytest.mark.skipif(not CAN, reason="network namespaces need root, ip and nft")
HOSTS = ("left", "hidden")


def left() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def of(pid: int) -> bool:
    return f"{namespaces.PREFIX}-{pid}-" in left()


@needs_root
def test_hosts_reach_each_other_and_the_hidden_one_by_another_address() -> None:
    with Namespaces(HOSTS, hidden="hidden") as network:
        assert network.own_address("hidden") != network.address("hidden")
        for host in HOSTS:
            shown = network.command(host, ["ip", "-o", "address", "show", "dev", LINK])
            said = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
            assert f" {network.own_address(host)}/" in said
        with network.inside("left"):
            network.drop(9876)
            network.pass_on()
    assert not of(os.getpid())


@needs_root
def test_what_a_killed_run_left_is_removed_by_the_next_one() -> None:
    program = f"""
import os
from lab.namespaces import Namespaces
with Namespaces({HOSTS!r}, hidden="hidden"):
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), 9)
"""
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    pid = int(made.stdout)
    assert of(pid)
    namespaces.remove_abandoned()
    assert not of(pid)


def test_who_may_make_none_is_told_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/true")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="need root"), Namespaces(HOSTS, hidden="hidden"):
        pass


def test_what_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "nft" else "/bin/true")
    with (
        pytest.raises(NotInstalledError, match="apt-get install nftables"),
        Namespaces(HOSTS, hidden="hidden"),
    ):
        pass
