"""A master whose log begins late keeps nothing of what lies before: that is not called kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_all_clear import headline_of, told
from tests.replay.world import World

BEHIND_FIVE = 985


def third_is_master(begin: int) -> World:
    """A third broker gets the log from `begin` on, joins the set, and is the only one left."""
    world = two_brokers()
    world.come_up(3)
    world.announce(3)
    world.follow(3, sync_from_last_file=True)
    third, end = world.brokers[3], world.brokers[1].end
    third.base = begin
    world.batch(3, begin, end - begin)
    world.report(3)
    world.alter((1, 2, 3))
    world.ask(1)
    world.die(1)
    world.die(2)
    world.take_over(3)
    world.announce(3)
    world.query_epochs(3)
    return world


@pytest.mark.parametrize(("begin", "compared", "tone"), [(0, 10, "kept"), (BEHIND_FIVE, 5, "unjudged")])
def test_what_lies_before_the_log_of_a_later_master_is_not_compared_with_it(
    begin: int, compared: int, tone: str, tmp_path: Path
) -> None:
    summary = told(pcap(third_is_master(begin).traffic.packets()), tmp_path / "late.pcap")
    assert [(each.acknowledged, each.followed) for each in summary.sends] == [(10, compared)]
    assert (headline_of(summary).tone, summary.losses) == (tone, [])
