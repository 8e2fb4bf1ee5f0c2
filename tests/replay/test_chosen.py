"""Who asks for some groups is told everything that may be of them: no choice hides a loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from replispec.replay.engines.chosen import NoGroupError
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.group_names import fits, is_named, may_fit
from replispec.replay.report.fill import Story, fill
from replispec.replay.report.headline import Headline, headline
from replispec.replay.report.summary import Summary
from replispec.runtime.primitives.invariants import Verdict
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.scenarios import failed_over, two_brokers
from tests.replay.world import World

OF_SEVERAL = "unknown (10.0.1.2:10911, of several sets or lives)"
CONTROLLERS_PORTS = (9876, 9878)


def told(packets: Sequence[Packet], path: Path, *groups: str) -> tuple[Summary, Headline]:
    """What a replay that was asked for some groups comes to."""
    path.write_bytes(pcap(packets))
    summary = replay([path], path.parent / "out", EngineName.LOCAL, Options(groups=groups))
    return summary, headline(fill(summary, Story()))


def groups_of(summary: Summary) -> set[str]:
    return {each.group for each in summary.findings}


def of_several_sets() -> World:
    """Broker 2 acknowledges 5 messages as master of broker-a, nobody else has them, and becomes one of
    broker-b at the same address."""
    world = two_brokers()
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    world.alter((1, 2))
    world.send(5)
    world.die(2)
    world.take_over(1)
    world.announce(1)
    world.query_epochs(1)
    other = World(name="broker-b", traffic=world.traffic)
    other.come_up(2)
    other.elect(2)
    other.announce(2)
    return world


def beside_a_set_that_nobody_names(world: World, messages: int = 10) -> list[Packet]:
    """The packets of a story, and of a broker that acknowledges messages and was not seen at a controller."""
    two_brokers(World(name="broker-b", subnet=2, traffic=world.traffic), messages=messages)
    return [each for each in world.traffic.packets() if not _registers(each, "10.0.2.")]


def _registers(packet: Packet, hosts: str) -> bool:
    ends = (packet.source, packet.destination)
    return any(end[1] in CONTROLLERS_PORTS for end in ends) and any(end[0].startswith(hosts) for end in ends)


@pytest.mark.parametrize("group", ["broker-a", "Controllers/broker-a", "broker-b", "Contr*"])
def test_messages_that_may_be_of_a_chosen_group_leave_no_promise_and_are_named(
    group: str, tmp_path: Path
) -> None:
    summary, found = told(of_several_sets().traffic.packets(), tmp_path / "several.pcap", group)
    assert found.tone == "unjudged"
    assert [each.acknowledged for each in summary.sends if each.group == OF_SEVERAL] == [5]
    assert any(line.startswith(f"Not judged: {OF_SEVERAL} ") for line in found.lines)
    assert any(line.startswith(f"{OF_SEVERAL}: 5 of 5 ") for line in found.lines)


def test_beside_losses_of_a_chosen_group_what_may_be_of_it_makes_them_at_least(tmp_path: Path) -> None:
    world = two_brokers()
    world.send(5)
    failed_over(world)
    packets = beside_a_set_that_nobody_names(world)
    _, whole = told(packets, tmp_path / "whole.pcap")
    summary, found = told(packets, tmp_path / "chosen.pcap", "broker-a")
    assert whole.text == found.text == "At least 5 acknowledged messages of Controllers/broker-a were lost"
    assert any(line.startswith("unknown (10.0.2.1:") for line in found.lines)
    assert {each for each in groups_of(summary) if is_named(each)} == {"Controllers/broker-a"}


def test_an_address_at_which_nothing_was_judged_takes_no_promise_from_a_chosen_group(tmp_path: Path) -> None:
    world = two_brokers()
    failed_over(world)
    packets = beside_a_set_that_nobody_names(world, messages=0)
    whole, _ = told(packets, tmp_path / "whole.pcap")
    assert any(each.idle for each in whole.findings if not is_named(each.group))
    summary, found = told(packets, tmp_path / "idle.pcap", "broker-a")
    assert found.tone == "kept"
    assert any(not is_named(each.group) for each in summary.findings)
    assert not any(each.idle for each in summary.findings if not is_named(each.group))
    assert found.lines[-1].startswith("Asked for groups: broker-a. ")


def test_a_group_is_chosen_with_its_later_lives_and_without_longer_names(tmp_path: Path) -> None:
    world = two_brokers()
    two_brokers(World(name="broker-ab", subnet=2, traffic=world.traffic))
    world.start_another_life()
    world.come_up(3)
    world.elect(3)
    world.announce(3)
    world.come_up(4)
    world.announce(4)
    world.query(master=4)
    packets = world.traffic.packets()
    for group in ("broker-a", "Controllers/broker-a"):
        summary, _ = told(packets, tmp_path / "lives.pcap", group)
        assert groups_of(summary) == {"Controllers/broker-a", "Controllers/broker-a#2"}
        violated = {each.group for each in summary.findings if each.verdict is Verdict.VIOLATED}
        assert (violated, summary.exit_code) == ({"Controllers/broker-a#2"}, 1)
    summary, _ = told(packets, tmp_path / "life.pcap", "broker-a#2")
    assert groups_of(summary) == {"Controllers/broker-a#2"}


@pytest.mark.parametrize("others", [(), ("broker-a",)])
def test_a_name_that_fits_no_group_is_refused_whatever_may_be_of_it(
    others: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(NoGroupError, match="no group fits broker-c; there are: Controllers/broker-a, "):
        told(of_several_sets().traffic.packets(), tmp_path / "none.pcap", "broker-c", *others)


@pytest.mark.parametrize(
    ("group", "pattern", "expected"),
    [
        ("G/a", "a", (True, True)),
        ("G/a#2", "a", (True, True)),
        ("G/a#2", "G/a", (True, True)),
        ("G/a#12", "G/a#12", (True, True)),
        ("G/a#12", "a#1", (False, False)),
        ("G/a", "a#2", (False, False)),
        ("G/ab", "a", (False, False)),
        ("G/ab", "a*", (True, True)),
        ("G/a[1]", "a[1]", (True, True)),
        ("G (c)/a", "G/a", (False, False)),
        ("unknown (10.0.0.1:1)", "a", (False, True)),
        ("unknown (10.0.0.1:1, of several sets or lives)", "H/a", (False, True)),
        ("unknown (of/a slash)", "a", (False, True)),
        ("unknown", "a", (False, True)),
        ("unknown/a#2", "G/a", (False, True)),
        ("unknown (10.0.0.1:1)/a", "G/a", (False, True)),
        ("unknown (10.0.0.1:1)/a", "G*", (False, True)),
        ("unknown/a", "G/b", (False, False)),
        ("unknown/a", "b", (False, False)),
        ("unknowns/a", "G/a", (False, False)),
        ("*", "a", (False, False)),
    ],
)
def test_a_group_fits_or_may_fit(group: str, pattern: str, expected: tuple[bool, bool]) -> None:
    assert (fits(group, [pattern]), may_fit(group, [pattern])) == expected


def test_every_sign_of_a_pattern_but_the_star_is_itself() -> None:
    assert fits("C/broker-a", ["broker-*"])
    assert not fits("C/broker-a", ["broker-?"])
    assert not fits("C/broker-a", ["broker-[ab]"])
    assert fits("C/broker-[ab]?", ["broker-[ab]?"])
    assert fits("C/broker-[ab]?", ["broker-[*"])
    assert may_fit("unknown/broker-a", ["C/broker-a"])
    assert not may_fit("unknown/broker-a", ["C/broker-?"])
