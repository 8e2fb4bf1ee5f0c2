"""The page of disasters, followed word by word: what was acknowledged is read in the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.operate.machines import cluster
from tests.operate.messages import Clients
from tests.operate.page import page


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_what_was_acknowledged_is_there_in_the_end(tmp_path: Path) -> None:
    with cluster(tmp_path) as found:
        clients = Clients(found)
        clients.send(20)
        for step in page("disaster").steps:
            found.follow([step])
            if step.line.endswith("admin health") and step.prints[-1] == "healthy":
                clients.send(5)
        assert clients.lost() == set()
        assert len(clients.acknowledged) == 20 + 3 * 5
