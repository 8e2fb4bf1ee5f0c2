"""The page of a cluster on several machines, followed word by word on loopback and on hosts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lab import namespaces
from lab.namespaces import Namespaces
from tests.operate.machines import CLIENT, MACHINES, Machines, machines
from tests.operate.messages import Clients
from tests.operate.page import page

NAME = "several-machines"
CAN = os.geteuid() == 0 and all(map(shutil.which, namespaces.PROGRAMS))
LOST = "poweroff"


def follow(found: Machines) -> None:
    """All of the page; messages are acknowledged before a machine is lost, and after it."""
    followed, clients = page(NAME), Clients(found)
    found.write(followed)
    at = next(number for number, step in enumerate(followed.steps) if LOST in step.line)
    found.follow(followed.steps[:at])
    clients.send(20)
    found.follow(followed.steps[at:])
    clients.send(20)
    assert clients.lost() == set()


def test_the_page_is_followed_word_by_word(tmp_path: Path) -> None:
    with machines(tmp_path) as found:
        follow(found)


@pytest.mark.skipif(not CAN, reason="network namespaces need root, ip and nft")
@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_the_page_is_followed_with_a_network_namespace_for_each_machine(tmp_path: Path) -> None:
    with Namespaces((*MACHINES, CLIENT), hidden=CLIENT) as network, machines(tmp_path, network) as found:
        follow(found)
