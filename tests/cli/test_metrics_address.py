"""Metrics have neither TLS nor users, so a role shows them beyond loopback only when it is told so twice."""

from __future__ import annotations

import pytest

from replispec.runtime.primitives.hosts import is_of_loopback
from replispec.wire.rocketmq.parameters import ROLES
from tests.cli.command import replispec

NEEDED = {
    "broker": ("--set", "brokerName=a", "--set", "controllerAddr=127.0.0.1:1"),
    "learner": ("--set", "brokerName=a", "--set", "controllerAddr=127.0.0.1:1"),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "127.0.0.1:0;broker.example:0"])
def test_metrics_are_not_shown_beyond_loopback_by_mistake(role: str, address: str) -> None:
    done = replispec(role, "--set", f"metricsListenAddress={address}", *NEEDED.get(role, ()))
    assert (done.returncode, done.stdout) == (2, "")
    assert "metricsListenAddress" in done.stderr
    assert "metricsToAnybody=true" in done.stderr


def test_who_says_so_listens_where_it_was_told() -> None:
    words = ("--set", "metricsListenAddress=192.0.2.1:0", "--set", "metricsToAnybody=true")
    done = replispec("nameserver", *words, "--set", "listenPort=0")
    # This machine has no such address; it was tried.
    assert "metricsToAnybody" not in done.stderr
    assert "192.0.2.1" in done.stderr


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("[::]", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_a_host_of_loopback_is_known_by_its_name_alone(host: str, is_own: bool) -> None:
    assert is_of_loopback(host) is is_own
