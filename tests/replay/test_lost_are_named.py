"""lost.jsonl names the messages that were lost, each once, and no other one: wherever their connections lie
in the capture, and whichever engine judged it.

`make test-full` takes twenty times as many seeds.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.engines import spark_parts
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.family import judged
from replispec.replay.engines.local import capture_row
from replispec.replay.engines.results import LOST_NAME, SUMMARY_NAME, CaptureResult, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.events.observe import observe
from replispec.wire.rocketmq import broker as to_broker
from tests.house.tree import ROOT
from tests.replay import mess
from tests.replay.pcap_writer import in_time_order, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_losses_are_listed import elected_again, of_producers
from tests.replay.test_mess import SEEDS
from tests.replay.test_spread import spread
from tests.replay.traffic import Link
from tests.replay.world import World

CAPTURES = ROOT / "spark_replay" / "captures"
LOSING = ("failover_lost", "hung_master", "older_copy", "power_cut")
SECOND = 10**9
Line = dict[str, Any]
Sent = tuple[int, int, int]
"""masterEpoch, place in the log, and when it was born."""


@dataclass(frozen=True, slots=True)
class Named:
    """What lost.jsonl names, what it calls in doubt (each with what may be lost instead), and how many
    messages the summary calls lost."""

    sure: Counter[Any]
    in_doubt: list[set[Any]]
    lost: int


class Witness(World):
    """A world that knows which of its messages were lost: each is born in a millisecond of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[Sent] = []
        self.cut: set[Sent] = set()
        self._born = 0

    def _sent(self) -> to_broker.SendMessageV2Request:
        request = super()._sent()
        self._born = request.born_timestamp or 0
        return request

    def send_to(self, number: int, *, epoch: int) -> None:
        super().send_to(number, epoch=epoch)
        _, _, offset = self.ledger.acknowledged[-1]
        self.stored.append((epoch, offset, self._born))

    def restart_shorter(self, number: int, kept: int) -> None:
        self.cut |= {each for each in self.stored if each[0] == self.epoch and each[1] >= kept}
        super().restart_shorter(number, kept)

    def lost(self) -> set[Sent]:
        starts = {epoch: start for (_, epoch), start in self.ledger.starts.items()}

        def end(epoch: int) -> int | None:
            return next((starts[each] for each in sorted(starts) if each > epoch), None)

        behind = {each for each in self.stored if (limit := end(each[0])) is not None and each[1] >= limit}
        return behind | self.cut


def told(rng: random.Random, chance: float) -> Witness:
    """A master that starts again with less, in its epoch, or is followed by one that has less. `chance`: that
    a message is sent on a new connection."""
    world = Witness()

    def send(messages: int) -> None:
        for _ in range(messages):
            if rng.random() < chance:
                world.producer = None
            world.send(1)

    two_brokers(world, messages=rng.randrange(1, 8))
    send(rng.randrange(1, 9))
    if rng.random() < 0.6:
        world.die(2)
        world.alter((1,))
        send(rng.randrange(1, 6))
        world.heartbeat_controller(1)
        log = world.brokers[1].log
        size = len(log) // len(world.stored)
        world.restart_shorter(1, rng.randrange(len(world.stored) + 1) * size)
        world.announce(1)
        send(rng.randrange(2, 12))
        world.heartbeat_controller(1)
    else:
        world.die(1)
        world.take_over(2)
        world.announce(2)
        send(rng.randrange(4))
        world.come_back(1)
        world.announce(1)
        world.follow(1)
        world.replicate(1)
    return world


def replayed(capture: bytes, folder: Path, name: str = "made.pcap") -> tuple[list[Line], int]:
    """The lines of lost.jsonl, and how many messages are lost by the summary."""
    path, out = folder / name, folder / "out"
    path.write_bytes(capture)
    replay([path], out, EngineName.LOCAL, Options())
    return lines(out), losses(out)


def lines(out: Path) -> list[Line]:
    path = out / LOST_NAME
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def losses(out: Path) -> int:
    return sum(each["acknowledged"] for each in json.loads((out / SUMMARY_NAME).read_text())["losses"])


def of_story(told: Iterable[Line], lost: int, world: Witness) -> Named:
    """By what a world knows: of what may be lost instead it does not say more than the place."""
    sure: Counter[Any] = Counter()
    in_doubt = []
    for each in told:
        one = each["epoch"], each["offset"], each["born_ms"]
        if "instead" in each:
            in_doubt.append({sent for sent in world.stored if sent[:2] == one[:2]})
        else:
            sure[one] += 1
    return Named(sure, in_doubt, lost)


def of_capture(told: Iterable[Line], lost: int) -> Named:
    """By where it was acknowledged."""
    sure: Counter[Any] = Counter()
    in_doubt = []
    for each in told:
        others = each.get("instead", ())
        if others:
            in_doubt.append({*map(place, (each, *others))})
        else:
            sure[place(each)] += 1
    return Named(sure, in_doubt, lost)


def place(each: Line) -> tuple[str, int, int]:
    return each["connection"], each["direction"], each["sequence"]


def assert_names(named: Named, truth: set[Any]) -> None:
    """Nothing but what was lost, once each; of what is in doubt one that was; as many as were counted."""
    assert set(named.sure) <= truth
    assert set(named.sure.values()) <= {1}
    assert all(each & truth for each in named.in_doubt)
    assert len(named.sure) + len(named.in_doubt) == named.lost


def late(capture: bytes, rng: random.Random, most_ns: int) -> bytes:
    header, packets = mess.read(capture)
    return mess.written(header, mess.some_connections_late(packets, rng, most_ns))


@pytest.mark.parametrize("seed", range(12 * SEEDS))
@pytest.mark.parametrize("chance", [0, 0.3])
def test_what_is_named_as_lost_is_what_a_story_lost(chance: float, seed: int, tmp_path: Path) -> None:
    """All of it by name, where the connection of one producer in a run tells what became of everything."""
    rng = random.Random(seed)
    world = told(rng, chance)
    made = pcap(world.traffic.packets(), nanoseconds=True)
    named = of_story(*replayed(made, tmp_path), world)
    assert_names(named, world.lost())
    if not chance and named.lost == len(world.lost()):
        assert set(named.sure) == world.lost()
    for most in (2, 20):
        moved = of_story(*replayed(late(made, rng, most * SECOND), tmp_path), world)
        assert_names(moved, world.lost())


@pytest.mark.parametrize("seed", range(4 * SEEDS))
def test_a_loss_of_an_epoch_that_was_not_seen_names_what_a_story_lost(seed: int, tmp_path: Path) -> None:
    """Of a master that was deposed and elected again, the connections of producers alone."""
    rng = random.Random(seed)
    world = Witness()
    elected_again(rng, world)
    truth = {sent[1:] for sent in world.lost()}
    for late_s in (0, 20):
        lines, lost = replayed(late(of_producers(world), rng, max(1, late_s * SECOND)), tmp_path)
        named = [(each["offset"], each["born_ms"]) for each in lines]
        assert set(named) <= truth
        assert len(set(named)) == len(named) == lost
        assert not any("epoch" in each or "instead" in each for each in lines)
        assert lost or seed != 5


@cache
def of_clean(name: str, folder: Path) -> set[Any]:
    path = CAPTURES / f"{name}.pcap"
    named = of_capture(*replayed(path.read_bytes(), folder, path.name))
    assert not named.in_doubt
    assert len(named.sure) == named.lost
    return set(named.sure)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("named")


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("seconds", [2, 20])
@pytest.mark.parametrize("name", LOSING)
def test_a_capture_names_the_same_messages_however_late_connections_are(
    name: str, seconds: int, seed: int, folder: Path
) -> None:
    """With runs of a broker that seem to overlap, it may only be told that one of two messages was lost."""
    capture = (CAPTURES / f"{name}.pcap").read_bytes()
    made = late(capture, random.Random(f"{name} {seed}"), seconds * SECOND)
    named = of_capture(*replayed(made, folder, f"{name}.pcap"))
    truth = of_clean(name, folder)
    assert_names(named, truth)
    assert named.lost == len(truth)
    assert not named.in_doubt or seconds > 2


# ---- one place, two messages -----------------------------------------------------------------------


def given_again(places: Iterable[int], *, same_connection: bool) -> tuple[World, tuple[Link, Link]]:
    """Ten messages, then others at some of their places, on the same connection or on another one."""
    world = two_brokers(messages=0)
    first = world.traffic.connect("10.0.0.4", world.brokers[1].endpoint)
    for place in range(10):
        keyed(world, first, place, f"first-{place}")
    second = first if same_connection else world.traffic.connect("10.0.0.7", world.brokers[1].endpoint)
    for place in places:
        keyed(world, second, place, f"second-{place}")
    return world, (first, second)


def keyed(world: World, link: Link, place: int, key: str) -> None:
    """A message with this key that is said to be stored at this place, in records of 100 bytes."""
    request = to_broker.SendMessageV2Request(
        "producers", "TopicA", born_timestamp=0, queue_id=0, properties=f"KEYS\x01{key}\x02"
    )
    opaque = world.traffic.request(link, request, key.encode())
    answer = to_broker.SendMessageResponse(world.brokers[1].message_id(100 * place), 0, place)
    world.traffic.answer(link, opaque, answer)


def test_messages_between_two_lost_ones_are_not_named(tmp_path: Path) -> None:
    world, _ = given_again((2, 8), same_connection=False)
    told, lost = replayed(pcap(world.traffic.packets()), tmp_path)
    assert lost == 2
    assert [each["keys"] for each in told] == ["first-2", "first-8"]


@pytest.mark.parametrize("late_ns", [0, 60 * SECOND])
def test_a_place_that_two_connections_were_given_says_what_may_be_lost_instead(
    late_ns: int, tmp_path: Path
) -> None:
    """Whichever of the two the capture shows first."""
    world, links = given_again((2,), same_connection=False)
    packets = links[0].talk.packets
    packets[:] = [replace(each, time_ns=each.time_ns + late_ns) for each in packets]
    told, lost = replayed(pcap(in_time_order([each.talk for each in world.traffic.links])), tmp_path)
    assert lost == len(told) == 1
    (other,) = told[0]["instead"]
    assert {told[0]["connection"].split(":")[0], other["connection"].split(":")[0]} == {
        link.talk.client[0] for link in links
    }
    assert told[0]["keys"] == ("second-2" if late_ns else "first-2")


def test_a_connection_tells_itself_which_of_its_messages_got_a_place_first(tmp_path: Path) -> None:
    world, _ = given_again((9,), same_connection=True)
    told, lost = replayed(pcap(world.traffic.packets()), tmp_path)
    assert lost == 1
    assert [(each["keys"], each.get("instead")) for each in told] == [("first-9", None)]


# ---- judged in parts -------------------------------------------------------------------------------


def in_parts(path: Path, seed: int) -> tuple[CaptureResult, CaptureResult]:
    """What a capture comes to as a whole and in parts."""
    decoded = decode_capture(path)
    events = observe(decoded.frames, decoded.holes, decoded.streams)
    capture = capture_row(path, decoded)
    return judged(capture, events, Options()), spread(capture, events, Options(), seed, 5)


@pytest.mark.parametrize("seed", range(3 * SEEDS))
def test_parts_name_the_messages_that_the_whole_names(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    made = pcap(told(rng, 0.3).traffic.packets(), nanoseconds=True)
    if seed % 3 == 1:
        made = pcap(given_again((2, 5, 8), same_connection=False)[0].traffic.packets())
    if seed % 2:
        made = late(made, rng, 20 * SECOND)
    path = tmp_path / "made.pcap"
    path.write_bytes(made)
    whole, parts = in_parts(path, seed)
    assert parts.lost == whole.lost
    assert parts.causes == whole.causes
    assert parts.timelines == whole.timelines


def test_spark_names_the_messages_that_were_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FRAMES_MINIMUM", "FRAMES_OF_ONE"):
        monkeypatch.setattr(spark_parts, name, 32)
    path = folder / "power_cut.pcap"
    truth = of_clean("power_cut", folder)
    path.write_bytes(late((CAPTURES / path.name).read_bytes(), random.Random(0), 20 * SECOND))
    out = folder / "spark"
    replay([path], out, EngineName.SPARK, Options(split_bytes=64 << 10, events_together=0))
    named = of_capture(lines(out), losses(out))
    assert (set(named.sure), named.in_doubt) == (truth, [])
    assert_names(named, truth)
