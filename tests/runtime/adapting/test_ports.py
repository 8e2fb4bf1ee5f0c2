"""Ports that were chosen are nobody else's, though nobody listens there yet."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress

import pytest

from replispec.runtime.adapting import instances_shell
from replispec.runtime.adapting.instances_shell import free_port
from replispec.runtime.adapting.ports_shell import CELL, are_free, claim

HOST = "127.0.0.1"
FIRST, MORE = 11_000, 40
BELOW = -2
CLAIMS = """
import sys
from replispec.runtime.adapting.ports_shell import claim
claimed = claim([int(sys.argv[1])])
print("claimed" if claimed else "refused", flush=True)
sys.stdin.read()
"""


def test_what_is_claimed_is_refused_to_all_others_until_it_is_given_back() -> None:
    first = claim([FIRST, FIRST + CELL])
    assert first is not None
    assert claim([FIRST + CELL]) is None
    assert claim([FIRST - CELL, FIRST]) is None
    other = claim([FIRST - CELL])
    assert other is not None, "what was refused keeps none of its ports"
    first.end()
    again = claim([FIRST])
    assert again is not None
    again.end()
    other.end()


def test_a_claim_of_another_process_holds_and_ends_with_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLAIMS, str(FIRST)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed\n"
        assert claim([FIRST]) is None
        other.kill()
    mine = claim([FIRST])
    assert mine is not None
    mine.end()


def test_two_instances_are_never_given_ports_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a range of forty each gets one, and what a broker listens to two below it: no port comes twice."""
    monkeypatch.setattr(instances_shell, "_PORTS", (FIRST, FIRST + 10 * CELL))
    monkeypatch.setattr(instances_shell, "_TRIES", 1000)
    monkeypatch.setattr(instances_shell, "random", random.Random(7))
    used: list[int] = []
    with ExitStack() as held:
        with suppress(OSError):
            for _ in range(MORE):
                port, claimed = free_port(HOST, BELOW)
                held.callback(claimed.end)
                used += [port, port + BELOW]
        assert len(used) == len(set(used)) > CELL


def test_a_port_where_somebody_listens_is_not_free() -> None:
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server((HOST, 0)))
        port: int = listener.getsockname()[1]
        assert not are_free(HOST, [port])
    assert are_free(HOST, [port])
