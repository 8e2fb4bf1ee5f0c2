"""The page of an upgrade, followed word by word while a client sends: what was acknowledged stays."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.operate.machines import cluster
from tests.operate.messages import Clients
from tests.operate.page import page

MESSAGES_MAX = 5_000


@contextmanager
def sending(clients: Clients) -> Iterator[None]:
    """A client sends while the block lasts; at most so many."""
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set() and len(clients.acknowledged) < MESSAGES_MAX:
            clients.send(1)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_nothing_acknowledged_is_lost_while_the_page_is_followed(tmp_path: Path) -> None:
    with cluster(tmp_path) as found:
        clients = Clients(found)
        with sending(clients):
            found.follow(page("upgrade").steps)
        assert len(clients.acknowledged) > 100
        assert clients.lost() == set()
