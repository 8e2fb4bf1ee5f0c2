"""Two clusters in one capture may share a broker name, or use one address after the other.

Nothing is lost in these captures and nobody errs: a replay may know less, but must not mix them up.
"""

from __future__ import annotations

import random

import pytest

from tests.replay import world as worlds
from tests.replay.pcap_writer import pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_mess import SEEDS
from tests.replay.test_order import judged, violated
from tests.replay.world import World


def test_two_clusters_with_one_broker_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    first = two_brokers(messages=5)
    monkeypatch.setattr(worlds, "CONTROLLER", ("10.0.9.1", 9878))
    monkeypatch.setattr(worlds, "NAME_SERVER", ("10.0.9.2", 9876))
    monkeypatch.setattr(worlds, "CONTROLLER_GROUP", "OtherControllers")
    other = two_brokers(World(subnet=2, traffic=first.traffic), messages=4)
    fail_over(other, 1)
    found = judged(pcap(first.traffic.packets()))
    assert not found.losses
    assert not violated(found)
    checked = {each.group for each in found.findings if each.invariant == "acknowledged-send-survives"}
    assert "OtherControllers/broker-a" in checked
    assert not [group for group in checked if group.startswith("unknown")]


def test_a_loss_of_one_of_two_clusters_with_one_broker_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    first = two_brokers(messages=5)
    monkeypatch.setattr(worlds, "CONTROLLER", ("10.0.9.1", 9878))
    monkeypatch.setattr(worlds, "NAME_SERVER", ("10.0.9.2", 9876))
    monkeypatch.setattr(worlds, "CONTROLLER_GROUP", "OtherControllers")
    other = two_brokers(World(subnet=2, traffic=first.traffic), messages=4)
    other.send(3)
    fail_over(other, 1)
    found = judged(pcap(first.traffic.packets()))
    assert [(each.group, each.acknowledged) for each in found.losses] == [("OtherControllers/broker-a", 3)]


def beside(first: World, patch: pytest.MonkeyPatch, *, cluster: str = "Cluster", messages: int = 10) -> World:
    """A cluster at other addresses whose controllers and brokers have the names of the first one's."""
    patch.setattr(worlds, "CONTROLLER", ("10.0.9.1", 9878))
    patch.setattr(worlds, "NAME_SERVER", ("10.0.9.2", 9876))
    patch.setattr(worlds, "CLUSTER", cluster)
    return two_brokers(World(subnet=2, traffic=first.traffic), messages=messages)


def test_two_clusters_that_share_all_names_are_two_broker_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    first = two_brokers(messages=5)
    other = beside(first, monkeypatch, messages=4)
    other.send(3)
    fail_over(other, 1)
    other.query_epochs(2)
    found = judged(pcap(first.traffic.packets()))
    lost = [(each.group, each.acknowledged) for each in found.losses]
    assert lost == [("Controllers (10.0.9.1:9878)/broker-a", 3)]
    assert violated(found) == {("Controllers (10.0.9.1:9878)/broker-a", "acknowledged-send-survives")}
    groups = {each.group for each in found.findings if each.invariant == "id-granted-once"}
    assert groups == {lost[0][0], "Controllers (10.0.0.1:9878)/broker-a"}


def test_clusters_that_share_the_names_of_their_controllers_are_called_by_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = two_brokers()
    beside(first, monkeypatch, cluster="Other")
    found = judged(pcap(first.traffic.packets()))
    groups = {each.group for each in found.findings if each.invariant == "id-granted-once"}
    assert groups == {"Controllers (Cluster)/broker-a", "Controllers (Other)/broker-a"}
    assert not violated(found)


def test_a_controller_that_knows_brokers_of_another_one_is_of_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader changes: brokers come back to another controller, one of them at another address."""
    world = two_brokers()
    world.die(1)
    monkeypatch.setattr(worlds, "CONTROLLER", worlds.OTHER_CONTROLLER)
    world.leader = worlds.OTHER_CONTROLLER
    world.come_back(2)
    world.subnet = 3
    world.come_up(4)
    found = judged(pcap(world.traffic.packets()))
    assert {each.group for each in found.findings if each.invariant == "id-granted-once"} == {
        "Controllers/broker-a"
    }


def test_an_address_that_another_group_uses_later_loses_nothing() -> None:
    first = two_brokers(messages=30)
    fail_over(first, 2)
    later = World(name="broker-b", traffic=first.traffic)
    later.come_up(1)
    later.elect(1)
    later.announce(1)
    later.subnet = 3
    later.come_up(2)
    later.announce(2)
    later.follow(2)
    later.heartbeat(2)
    later.alter((1, 2))
    later.send(3)
    later.replicate(2)
    fail_over(later, 2)
    found = judged(pcap(first.traffic.packets()))
    assert not found.losses
    assert not violated(found)


def fail_over(world: World, messages: int) -> None:
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(messages)


def moved_between(rng: random.Random) -> tuple[World, World]:
    """Two clusters that share all names but their own; a broker ends, loses its store and starts in the other
    one at the address that it had."""
    first = two_brokers(messages=rng.randrange(1, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "CONTROLLER", ("10.0.9.1", 9878))
        patch.setattr(worlds, "NAME_SERVER", ("10.0.9.2", 9876))
        patch.setattr(worlds, "CLUSTER", "Other")
        other = World(subnet=2, traffic=first.traffic)
        other.come_up(1)
        other.elect(1)
        other.announce(1)
        other.send(rng.randrange(1, 12))
        first.die(2)
        other.subnet = 1
        other.come_up(2)
        other.announce(2)
        other.follow(2)
        other.replicate(2)
        other.alter((1, 2))
        other.send(rng.choice((0, 0, 3)))
        other.die(1)
        other.take_over(2)
        other.announce(2)
        other.query_epochs(2)
        other.query()
    first.heartbeat_controller(1)
    if rng.random() < 0.5:
        first.query()
    first.send(rng.randrange(4))
    return first, other


@pytest.mark.parametrize("seed", range(5 * SEEDS))
def test_a_broker_that_is_moved_to_a_cluster_of_equal_names_joins_nothing(seed: int) -> None:
    first, other = moved_between(random.Random(seed))
    found = judged(pcap(first.traffic.packets(), nanoseconds=True))
    assert not first.ledger.losses()
    truth = sum(each.acknowledged for each in other.ledger.losses())
    assert sum(each.acknowledged for each in found.losses) in (0, truth)
    groups = {each.group for each in found.losses}
    assert groups <= {"Controllers (Other)/broker-a"}
    assert {group for group, _ in violated(found)} == groups
