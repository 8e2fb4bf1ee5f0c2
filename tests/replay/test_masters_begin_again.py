"""Masters that start again within their epoch, and logs with records that nobody was acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.wire.rocketmq import broker as to_broker
from replispec.wire.rocketmq.codes import ResponseCode
from tests.replay.brokers import Broker
from tests.replay.expectations import BROKER_NAME, CONTROLLER_GROUP
from tests.replay.pcap_writer import in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_all_clear import headline_of
from tests.replay.test_order import judged, lost, verdicts
from tests.replay.world import OTHER_CONTROLLER, World

GROUP = f"{CONTROLLER_GROUP}/{BROKER_NAME}"
SURVIVES = (GROUP, "acknowledged-send-survives")


def begin_again(world: World, number: int) -> None:
    """A master starts again with its whole log, and calls its epoch's start the end of that log."""
    world.die(number)
    world.come_back(number)
    broker = world.brokers[number]
    broker.epochs[-1] = (broker.epochs[-1][0], broker.end)
    world.announce(number)


def replay_of(world: World, folder: Path) -> str:
    """The headline."""
    folder.mkdir()
    path = folder / "made.pcap"
    path.write_bytes(pcap(world.traffic.packets()))
    return headline_of(replay([path], folder / "out", EngineName.LOCAL, Options())).text


def change_places(world: World, old: int, new: int) -> None:
    """The master dies when the other one has everything, which takes over."""
    world.come_back(new)
    world.announce(new)
    world.follow(new)
    world.replicate(new)
    world.alter((1, 2))
    world.die(old)
    world.take_over(new)
    world.announce(new)


def test_what_a_master_wrote_before_it_began_again_covers_what_the_one_before_had() -> None:
    """Its epoch is told from the end of its log on, behind the place where five messages were lost."""
    world = two_brokers()
    world.send(5)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(8)
    begin_again(world, 2)
    change_places(world, 2, 1)
    world.query_epochs(1)
    found = judged(pcap(world.traffic.packets()))
    assert (lost(found), verdicts(found)[SURVIVES]) == (5, "violated")


def test_what_a_master_had_acknowledged_before_it_began_again_is_not_of_its_older_office() -> None:
    world = two_brokers()
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(2)
    change_places(world, 2, 1)
    world.send(8)
    begin_again(world, 1)
    world.come_back(2)
    world.announce(2)
    world.follow(2)
    world.replicate(2)
    world.send(3)
    found = judged(pcap(world.traffic.packets()))
    assert (lost(found), verdicts(found)[SURVIVES]) == (0, "unknown")


@pytest.mark.parametrize("without_client", [False, True])
def test_a_start_behind_what_the_master_had_reported_is_not_believed(*, without_client: bool) -> None:
    """It had started again, but its registration was not captured: five messages are lost."""
    world = two_brokers()
    world.send(5)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(8)
    begin_again(world, 2)
    gone = world.brokers[2].to_controller
    change_places(world, 2, 1)
    world.query_epochs(1)
    server = world.brokers[2].endpoint
    talks = [
        link.talk
        for link in world.traffic.links
        if link is not gone and not (without_client and link.talk.server == server)
    ]
    found = judged(pcap(in_time_order(talks)))
    told = (0, "unknown") if without_client else (5, "violated")
    assert (lost(found), verdicts(found)[SURVIVES]) == told


def test_what_is_acknowledged_behind_the_end_that_was_reported_is_not_of_the_older_office() -> None:
    """Neither that its master started again was captured: none of eight messages is lost."""
    world = two_brokers()
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(2)
    change_places(world, 2, 1)
    world.send(8)
    begin_again(world, 1)
    gone = world.brokers[1].to_controller
    world.come_back(2)
    world.announce(2)
    world.follow(2)
    world.replicate(2)
    world.send(3)
    found = judged(pcap(in_time_order([link.talk for link in world.traffic.links if link is not gone])))
    assert (lost(found), verdicts(found)[SURVIVES]) == (0, "unknown")


def test_a_start_where_the_log_ended_before_the_office_is_believed_though_its_master_began_again() -> None:
    """It was told once, and so the registration of the restart would take belief from it."""
    world = two_brokers(messages=5)
    world.send(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send(7)
    world.die(2)
    world.come_back(2)
    world.announce(2)
    found = judged(pcap(world.traffic.packets()))
    assert (lost(found), verdicts(found)[SURVIVES]) == (2, "violated")


def test_messages_at_an_address_that_nothing_names_may_be_lost_too(tmp_path: Path) -> None:
    """Then what was lost is a least number."""
    world = two_brokers(messages=5)
    world.send(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send(7)
    assert replay_of(world, tmp_path / "alone").startswith("2 acknowledged messages")
    other = World(name="unheard", subnet=2, traffic=world.traffic)
    stranger = other.brokers[1] = Broker(1, 2, learner=False)
    offset, asked = stranger.store()
    answer = to_broker.SendMessageResponse(stranger.message_id(offset), 0, 0)
    other._exchange(other._to(stranger), other._sent(), answer, asked=asked)
    assert replay_of(world, tmp_path / "beside").startswith("At least 2 acknowledged messages")


def test_messages_behind_records_that_nobody_was_acknowledged_are_of_either_office() -> None:
    """A deposed master stores eight messages in vain and then three that it acknowledges; all are cut."""
    world = two_brokers()
    world.take_over(2)
    world.announce(2)
    world.send(2)
    deposed = world.brokers[1]
    for _ in range(8):
        offset, asked = deposed.store()
        answer = to_broker.SendMessageResponse(deposed.message_id(offset), 0, 0)
        code = ResponseCode.FLUSH_SLAVE_TIMEOUT
        world._exchange(world._to(deposed), world._sent(), answer, asked=asked, code=code)
    for _ in range(3):
        world.send_to(1, epoch=1)
    world.notify(1)
    change_places(world, 2, 1)
    world.query_epochs(1)
    change_places(world, 1, 2)
    world.query_epochs(2)
    found = judged(pcap(world.traffic.packets()))
    assert verdicts(found)[SURVIVES] == "unknown"


def test_messages_of_an_epoch_that_a_later_history_leaves_out_are_not_called_kept() -> None:
    """Unclean election: a third broker has more of the first epoch, and never met the second master."""
    world = two_brokers()
    world.come_up(3)
    world.announce(3)
    world.follow(3)
    world.replicate(3)
    world.alter((1, 2, 3))
    world.send(8)
    world.replicate(3)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send(5)
    world.die(2)
    world.take_over(3)
    world.announce(3)
    world.query_epochs(3)
    found = judged(pcap(world.traffic.packets()))
    counts = next(each.counts for each in found.findings if (each.group, each.invariant) == SURVIVES)
    assert (lost(found), counts["unknown"]) == (8, 5)


@pytest.mark.parametrize("without_first", [False, True])
def test_what_a_later_epoch_covers_is_lost_whatever_became_of_the_log_before(*, without_first: bool) -> None:
    """The master had started again with a shorter log, and one word alone says so."""
    world = two_brokers(messages=5)
    world.send(10)
    world.heartbeat_controller(1)
    kept = world.brokers[2].end
    world.die(1)
    world.brokers[1].cut(kept + 197 * 3)
    world.come_back(1)
    other = world.traffic.connect(world.brokers[1].host, OTHER_CONTROLLER)
    world.ask_leader(other, broker=True)
    for _ in range(2):
        world.heartbeat_controller(1, other)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    talks = [link.talk for link in world.traffic.links[without_first:]]
    assert lost(judged(pcap(in_time_order(talks)))) == 10


def test_where_the_log_that_lost_messages_is_in_doubt_beside_it_more_may_be_lost(tmp_path: Path) -> None:
    """One word alone tells that the log of the later master fell."""
    world = two_brokers(messages=5)
    world.send(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send(7)
    for number in (2, 2):
        world.heartbeat_controller(number)
    told = replay_of(world, tmp_path / "before")
    assert told.startswith("2 acknowledged messages")
    world.brokers[2].cut(world.brokers[2].end - 197 * 7)
    world.heartbeat_controller(2)
    assert replay_of(world, tmp_path / "after").startswith("At least 2 acknowledged messages")
