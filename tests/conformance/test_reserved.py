"""Addresses that a case reserves are nobody else's, in whatever run beside it."""

from __future__ import annotations

from contextlib import ExitStack

from replispec.conformance.staging import PORTS, PORTS_EACH, addresses
from replispec.runtime.adapting.ports_shell import claim

NAMES = ("c0", "c1", "c2")
JAVA = (-2, 0, 1)
"""What a broker of Java listens to: two below its port as well, and replication after it."""


def test_runs_with_the_same_seed_reserve_other_addresses_and_give_them_back() -> None:
    with ExitStack() as held:
        one, claims = addresses(NAMES, "a seed", set())
        other, more = addresses(NAMES, "a seed", set())
        for each in (*claims, *more):
            held.callback(each.end)
        taken = [int(each.rpartition(":")[2]) for each in (*one.values(), *other.values())]
        used = {port + beside for port in taken for beside in JAVA}
        assert len(used) == len(taken) * len(JAVA)
        assert all(PORTS[0] <= port < PORTS[1] + PORTS_EACH for port in used)
        assert [claim([port]) for port in used] == [None] * len(used)
    again, claims = addresses(NAMES, "a seed", set())
    for each in claims:
        each.end()
    assert again == one
