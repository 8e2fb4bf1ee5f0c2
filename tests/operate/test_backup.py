"""The page of backups, followed word by word: what was acknowledged before the copy is there again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.operate.machines import cluster
from tests.operate.messages import Clients
from tests.operate.page import page


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_what_was_acknowledged_before_the_copy_is_there_again(tmp_path: Path) -> None:
    steps = page("backup").steps
    gone = next(
        number for number, step in enumerate(steps) if "systemctl stop replispec-broker r" in step.line
    )
    with cluster(tmp_path) as found:
        clients = Clients(found)
        clients.send(20)
        copied = list(clients.acknowledged)
        found.follow(steps[:gone])
        clients.send(5)
        found.follow(steps[gone:])
        # What came after the copy is not there: the page says so.
        assert clients.lost() == set(clients.acknowledged) - set(copied)
