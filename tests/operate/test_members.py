"""The page of members that come and go, followed word by word; what was acknowledged stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.operate.machines import cluster
from tests.operate.messages import Clients
from tests.operate.page import page


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_the_page_is_followed_word_by_word(tmp_path: Path) -> None:
    followed = page("members")
    with cluster(tmp_path) as found:
        clients = Clients(found)
        clients.send(20)
        found.write(followed)
        found.follow(followed.steps)
        clients.controllers = ["m1", "m2", "m4"]
        clients.send(20)
        assert clients.lost() == set()
