"""Between connections only causes order: a delay of whole connections alters no verdict, lost packets
invent none.

`make test-full` takes twenty times as many seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.observe import observe
from replispec.replay.judges.rocketmq.judge import Judgement, judge_capture
from tests.house.tree import ROOT
from tests.replay import mess
from tests.replay.faults import taken, written
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.seeded import SEEDED, Fault
from tests.replay.test_mess import SEEDS

CAPTURES = ROOT / "spark_replay" / "captures"
MILLISECOND = 10**6
Mess = Callable[[Sequence[mess.Seen], random.Random], list[mess.Seen]]
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
DELAYS: dict[str, Mess] = {
    "up to 500 ms": lambda packets, rng: mess.connections_apart(packets, rng, 500 * MILLISECOND),
    "up to 2 s": lambda packets, rng: mess.connections_apart(packets, rng, 2_000 * MILLISECOND),
    "some of them, up to 2 s": lambda packets, rng: mess.some_connections_late(
        packets, rng, 2_000 * MILLISECOND
    ),
    "drifting, up to 2 s": lambda packets, rng: mess.connections_drift(packets, rng, 2_000 * MILLISECOND),
}
SHARES = (0.005, 0.05)
LATE_MS = (-60_000, -15_000, -3_000, 3_000, 15_000, 60_000)
"""How late one connection is against all others."""


def judged(capture: bytes) -> Judgement:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.pcap"
        path.write_bytes(capture)
        found = decode_capture(path)
    return judge_capture("made.pcap", observe(found.frames, found.holes, found.streams))


def verdicts(judgement: Judgement) -> dict[tuple[str, str], str]:
    return {(each.group, each.invariant): each.verdict.value for each in judgement.findings}


def violated(judgement: Judgement) -> set[tuple[str, str]]:
    return {key for key, verdict in verdicts(judgement).items() if verdict == "violated"}


def lost(judgement: Judgement) -> int:
    return sum(each.acknowledged for each in judgement.losses)


@cache
def packets(name: str) -> tuple[bytes, Sequence[mess.Seen]]:
    return mess.read((CAPTURES / f"{name}.pcap").read_bytes())


@cache
def clean(name: str) -> Judgement:
    return judged((CAPTURES / f"{name}.pcap").read_bytes())


def one_late(seen: Sequence[mess.Seen], connection: tuple[bytes, ...], late_ns: int) -> list[mess.Seen]:
    return mess.delayed(seen, lambda each: late_ns if each.connection == connection else 0)


@pytest.mark.parametrize("name", NAMES)
def test_one_late_connection_invents_no_fault_and_no_loss_and_clears_none(name: str) -> None:
    header, seen = packets(name)
    late = [*product(sorted({each.connection for each in seen if each.connection}), LATE_MS)]
    few = random.Random(name).sample(late, min(4, len(late))) if SEEDS < 20 else late
    for connection, milliseconds in few:
        found = judged(mess.written(header, one_late(seen, connection, milliseconds * MILLISECOND)))
        assert violated(found) <= violated(clean(name)), (connection, milliseconds)
        kept = {key for key, verdict in verdicts(found).items() if verdict == "ok"}
        assert not kept & violated(clean(name)), (connection, milliseconds)
        assert lost(found) == lost(clean(name)), (connection, milliseconds)


@pytest.mark.parametrize(("name", "kind"), [*product(NAMES, DELAYS)])
def test_a_delay_of_whole_connections_alters_no_verdict_and_no_loss(name: str, kind: str) -> None:
    header, seen = packets(name)
    for seed in range(SEEDS):
        found = judged(mess.written(header, DELAYS[kind](seen, random.Random(f"{name} {kind} {seed}"))))
        assert verdicts(found) == verdicts(clean(name)), f"seed {seed}"
        assert found.losses == clean(name).losses, f"seed {seed}"


def master_dies_after_replicas_came(replicas: int, rng: random.Random) -> list[Packet]:
    """Replicas connect shortly before their master dies, and of their connections some are seen late. Nothing
    is lost."""
    world = two_brokers(messages=5)
    world.traffic.wait(20)
    links = []
    for number in range(3, 3 + replicas):
        world.come_up(number)
        world.announce(number)
        world.follow(number)
        links += [world.brokers[number].replication, world.brokers[number].to_controller]
    for number in range(3, 3 + replicas):
        world.heartbeat(number)
    world.send(5)
    world.replicate(2)
    world.heartbeat_controller(1)
    world.traffic.wait(rng.random())
    world.die(1)
    world.traffic.wait(10)
    world.take_over(2)
    world.announce(2)
    world.send(1)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    late = {id(link): rng.randrange(2_000 * MILLISECOND) for link in links if rng.random() < 0.7}
    return sorted(
        (
            replace(packet, time_ns=packet.time_ns + late.get(id(link), 0))
            for link in world.traffic.links
            for packet in link.talk.packets
        ),
        key=lambda packet: packet.time_ns,
    )


@pytest.mark.parametrize("seed", range(10 * SEEDS))
def test_replicas_that_are_seen_late_come_to_no_other_run_of_their_master(seed: int) -> None:
    rng = random.Random(seed)
    found = judged(pcap(master_dies_after_replicas_came(1 + seed % 3, rng), nanoseconds=True))
    assert (violated(found), lost(found)) == (set(), 0)


@pytest.mark.parametrize(("name", "share"), [*product(NAMES, SHARES)])
def test_lost_packets_invent_no_violation_and_no_loss(name: str, share: float) -> None:
    header, seen = packets(name)
    for seed in range(SEEDS):
        rng = random.Random(f"{name} {share} {seed}")
        kept = mess.connections_apart(mess.lossy(seen, rng, share), rng, 2_000 * MILLISECOND)
        found = judged(mess.written(header, kept))
        assert violated(found) <= violated(clean(name)), f"seed {seed}"
        assert lost(found) <= lost(clean(name)), f"seed {seed}"


@pytest.mark.parametrize(
    "fault", [each for each in SEEDED if not each.all_ack], ids=lambda fault: fault.edit.__name__
)
def test_a_fault_is_found_however_late_connections_are(fault: Fault) -> None:
    """Half of the seeds: some faults take seconds each, whose broker sets are walked in many orders."""
    made = pcap(written(fault.edit(taken(CAPTURES / f"{fault.capture}.pcap"))), nanoseconds=True)
    header, seen = mess.read(made)
    for seed in range(max(1, SEEDS // 2)):
        late = mess.connections_drift(
            seen, random.Random(f"{fault.edit.__name__} {seed}"), 2_000 * MILLISECOND
        )
        found = {invariant for _, invariant in violated(judged(mess.written(header, late)))}
        assert found == fault.breaks, f"seed {seed}"


@pytest.mark.parametrize("name", NAMES)
def test_a_connection_that_was_not_captured_invents_no_violation_and_no_loss(name: str) -> None:
    header, seen = packets(name)
    every = sorted({each.connection for each in seen if each.connection is not None})
    for missing in random.Random(name).sample(every, min(SEEDS, len(every))):
        found = judged(mess.written(header, [each for each in seen if each.connection != missing]))
        assert violated(found) <= violated(clean(name)), missing
        assert lost(found) <= lost(clean(name)), missing


@pytest.mark.parametrize("port", [59_522, 59_772, 44_388, 36_302])
def test_an_id_that_was_granted_unseen_is_nobodys_fault(port: int) -> None:
    """Broker 3 is granted the next id, while what granted id 2 before was not captured."""
    controller = 39_871
    header, seen = packets("o_brokerid_change")
    ends = [{int.from_bytes(end[-2:], "big") for end in each.ends or ()} for each in seen]
    kept = [each for each, own in zip(seen, ends, strict=True) if own != {controller, port}]
    assert len(kept) < len(seen)
    assert not violated(judged(mess.written(header, kept)))
