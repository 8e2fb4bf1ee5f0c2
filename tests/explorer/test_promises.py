"""Every system of the specification keeps what it promises, within the bounds that stand here.

`make explore` explores with more faults.
"""

from __future__ import annotations

import re

import pytest

from replispec.explorer.report import Extent, explored, system_named, systems
from tests.house.tree import ROOT

# The cheapest first: who asks whether any promise is broken has an answer soon.
RUNS = {
    "registration": ("registration", Extent()),
    "registration, a removal": ("registration", Extent(budgets={"crashes": 0, "removals": 1})),
    "registration, a full disk": ("registration", Extent(budgets={"refusals": 1})),
    "registration, a broker moves": ("registration", Extent(budgets={"crashes": 0, "moves": 1})),
    "registration, no controller is known": (
        "registration",
        Extent(budgets={"crashes": 0, "blindness": 1}),
    ),
    "registration, what nobody sound says": (
        "registration",
        Extent(budgets={"lost": 0, "crashes": 0, "strays": 1, "blindness": 1}),
    ),
    "registration, what nobody sound says, and a lost message": (
        "registration",
        Extent(budgets={"crashes": 0, "strays": 1}),
    ),
    "learning": ("learning", Extent()),
    "learning, its own process alone": ("learning", Extent(budgets={"starts": 2, "sightings": 0})),
    "learning, a late request": ("learning", Extent(budgets={"late": 1})),
    "learning, the master is gone, and what is known is said again": (
        "learning",
        Extent(budgets={"lost": 0, "blindness": 0, "breaks": 1, "repetitions": 1}),
    ),
    "learning, what nobody sound asks": ("learning", Extent(budgets={"lost": 0, "starts": 1, "strays": 1})),
    "replication": ("replication", Extent()),
    "replication, what does not leave at once": (
        "replication",
        Extent(budgets={"learners": 0, "strangers": 0, "repetitions": 0, "delays": 2}),
    ),
    "replication, what nobody sound says": (
        "replication",
        Extent(budgets={"learners": 0, "strangers": 0, "strays": 1}),
    ),
    "replication, what nobody sound says while it does not leave": (
        "replication",
        Extent(budgets={"learners": 0, "strangers": 0, "repetitions": 0, "strays": 1, "delays": 1}),
    ),
    "sync_state_set, a disk that loses what was acknowledged": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "losses": 1}),
    ),
    "sync_state_set, what nobody sound says": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "crashes": 1, "strays": 1}, messages=3),
    ),
    "sync_state_set, a master takes office where no controller is known": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "offices": 1, "blindness": 1}, messages=3),
    ),
    "sync_state_set, a removal": ("sync_state_set", Extent(budgets={"lost": 0, "removals": 1})),
    "sync_state_set": ("sync_state_set", Extent()),
    "sync_state_set, a late request": ("sync_state_set", Extent(budgets={"lost": 0, "late": 1}, messages=3)),
    "sync_state_set, a replica that lags": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "lags": 1}, messages=3),
    ),
    "sync_state_set, a crash": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "crashes": 1}, messages=3),
    ),
    "sync_state_set, strangers wait for the end of a question": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "strangers": 1, "removals": 1}),
    ),
    "sync_state_set, a master with strangers who wait begins again": (
        "sync_state_set",
        Extent({"broker": 1}, {"lost": 0, "crashes": 1, "strangers": 2}),
    ),
    "sync_state_set, whom a master asks in is gone before it was asked": (
        "sync_state_set",
        Extent(budgets={"delays": 1}, messages=3),
    ),
    "replication, silences": (
        "replication",
        Extent(budgets={"learners": 0, "strangers": 0, "repetitions": 0, "silences": 1}, messages=4),
    ),
    "replication, elections without a message": (
        "replication",
        Extent(budgets={"elections": 3, "learners": 0, "strangers": 0, "repetitions": 0}, messages=4),
    ),
    "sync_state_set, a silent broker": (
        "sync_state_set",
        Extent(budgets={"lost": 0, "silences": 1}),
    ),
    "fail_over, what is not on the disk is sent": (
        "fail_over",
        Extent(budgets={"elections": 1, "messages": 2, "early": 1, "lags": 0}),
    ),
    "group": ("group", Extent(budgets={"lost": 0})),
    "cleaning, what comes late, again, or from who is not entitled to it": (
        "cleaning",
        Extent({"broker": 2}, {"strays": 2, "removals": 0}),
    ),
    "cleaning": ("cleaning", Extent()),
    "fail_over": ("fail_over", Extent()),
    "hearing": ("hearing", Extent()),
    "migration, what nobody sound says": (
        "migration",
        Extent(budgets={"lost": 0, "migrations": 1, "deletions": 1, "strays": 1}),
    ),
    "migration, an administrator ends in the middle": (
        "migration",
        Extent(budgets={"lost": 0, "migrations": 1, "deaths": 2}),
    ),
    "migration, the source is lost": (
        "migration",
        Extent(budgets={"lost": 0, "migrations": 1, "disasters": 1}),
    ),
    "migration, a message queue is taken again": (
        "migration",
        Extent({"broker": 2}, {"lost": 0, "sends": 2, "deletions": 1, "migrations": 3}),
    ),
    "migration": ("migration", Extent()),
    "remapping, what nobody sound says": (
        "remapping",
        Extent(budgets={"lost": 0, "moves": 1, "strays": 1}),
    ),
    "remapping, messages that were on their way": (
        "remapping",
        Extent(budgets={"lost": 0, "moves": 1, "sends": 1, "stragglers": 2}),
    ),
    "remapping, an administrator ends in the middle": (
        "remapping",
        Extent(budgets={"lost": 0, "moves": 1, "deaths": 2, "sends": 1}),
    ),
    "remapping, an answer is lost": ("remapping", Extent(budgets={"moves": 1, "sends": 1, "lost": 2})),
    "remapping": ("remapping", Extent(budgets={"lost": 0, "sends": 1})),
    "moving": ("moving", Extent()),
    "moving, two controllers end": ("moving", Extent(budgets={"crashes": 2, "silences": 0})),
    "following": ("following", Extent(budgets={"sends": 1})),
    "following, questions fail": ("following", Extent(budgets={"sends": 1, "epochs": 0, "failures": 1})),
    "following, two records": ("following", Extent(budgets={"epochs": 0})),
    "topic": ("topic", Extent()),
    "topic, what comes late": ("topic", Extent(budgets={"lags": 1, "strays": 1})),
    "partition_in_transition, two controllers": (
        "partition_in_transition",
        Extent(budgets={"sends": 0}),
    ),
    "partition_in_transition, a follower leaves the ISR and returns": (
        "partition_in_transition",
        Extent(counts={"controller": 1}, budgets={"lags": 1}),
    ),
}


def test_every_system_is_explored() -> None:
    assert set(systems()) == {name for name, _ in RUNS.values()}


@pytest.mark.parametrize(("name", "bounds"), RUNS.values(), ids=RUNS)
def test_a_system_keeps_what_it_promises(name: str, bounds: Extent) -> None:
    report, _ = explored(system_named(name), bounds, lambda: 0.0)
    assert [each.promise for each in report.stories] == []
    assert report.finished
    assert set(report.kept) == {
        "every_event_has_an_edge",
        *(each.name for each in system_named(name).properties),
    }


def test_more_brokers_than_a_system_has_are_different_ones() -> None:
    """`--count` takes nine: what a system says of an instance by its number, it says of each."""
    few = {"lost": 0, "crashes": 0}
    report, _ = explored(system_named("registration"), Extent({"broker": 4}, few, 2, 5_000), lambda: 0.0)
    assert [each.promise for each in report.stories] == []
    files = sorted((ROOT / "spec" / "systems").rglob("*.yaml"))
    assert files
    assert [path.name for path in files if re.search(r"\bnumber [=!]= \d", path.read_text("utf-8"))] == []


def test_a_follower_that_cuts_to_a_stale_high_watermark_and_then_leads_loses_what_was_acknowledged() -> None:
    """The design's own truncation, which KIP-101 replaced: the machines do as the design says."""
    bounds = Extent(counts={"controller": 1}, budgets={"silences": 2})
    report, _ = explored(system_named("partition_in_transition"), bounds, lambda: 0.0)
    assert [(each.promise, len(each.steps)) for each in report.stories] == [("acknowledged_is_kept", 21)]


def test_of_two_generations_only_the_one_that_cuts_to_its_watermark_loses_what_was_acknowledged() -> None:
    """The race R16, on the machine of the follower."""
    bounds = Extent(budgets={"watermarks": 1, "sends": 1, "epochs": 0})
    report, _ = explored(system_named("following"), bounds, lambda: 0.0)
    assert [(each.promise, len(each.steps)) for each in report.stories] == [
        ("acknowledged_records_are_kept", 13)
    ]
