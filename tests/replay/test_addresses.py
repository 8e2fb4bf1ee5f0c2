"""In whatever form addresses are written, by whatever names hosts are called: a replay tells the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from itertools import cycle
from pathlib import Path

import pytest

from replispec.replay.events.observation import Alive, Cleaned, Fact, Handshake, Observation
from replispec.replay.events.rocketmq.addresses import behind_names, in_one_form
from replispec.replay.hosts.merging import merge
from replispec.replay.judges.rocketmq.judge import Judgement
from replispec.replay.redact.run import redact
from replispec.wire.rocketmq.store import OffsetMessageId, OffsetMessageIdV6
from tests.replay import brokers as clients
from tests.replay import world as worlds
from tests.replay.brokers import Broker
from tests.replay.pcap_writer import Endpoint, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged
from tests.replay.world import World

Write = Callable[[Endpoint], str]
PLACE = ("a.pcap", 100, 0, "10.0.1.1:5000<->10.0.0.1:9878#1", 0, 0, 0)


def plain(end: Endpoint) -> str:
    return f"[{end[0]}]:{end[1]}"


def bare(end: Endpoint) -> str:
    return f"{end[0]}:{end[1]}"


def whole(end: Endpoint) -> str:
    """All eight groups without leading zeros, and the zone, as Java has them."""
    return f"[{java(end[0])}%eth0]:{end[1]}"


def bare_whole(end: Endpoint) -> str:
    return f"{java(end[0])}:{end[1]}"


def java(host: str) -> str:
    packed = ip_address(host).packed
    return ":".join(f"{int.from_bytes(packed[at : at + 2]):x}" for at in range(0, 16, 2))


def in_turns() -> Write:
    """Another form whenever an address is written."""
    forms: Iterator[Write] = cycle((plain, bare, whole, bare_whole))

    def in_turns(end: Endpoint) -> str:
        return next(forms)(end)

    return in_turns


def mapped(end: Endpoint) -> str:
    return f"[{IPv6Address(f'::ffff:{end[0]}')}]:{end[1]}"


def named(end: Endpoint) -> str:
    """Brokers by a name, everybody else by an address."""
    last = end[0].rpartition(".")[2]
    return f"Broker-{last}.svc:{end[1]}" if end[0].startswith("10.0.1.") else bare(end)


def writing(monkeypatch: pytest.MonkeyPatch, write: Write, host: Callable[[Broker], str]) -> None:
    """From now on worlds write addresses so, and brokers are at these hosts."""

    class Elsewhere(Broker):
        __slots__ = ()

        @property
        def host(self) -> str:
            return host(self)

        @property
        def address(self) -> str:
            return write(self.endpoint)

        def message_id(self, offset: int) -> str:
            packed = ip_address(self.host).packed
            form = OffsetMessageId if len(packed) == 4 else OffsetMessageIdV6
            return form(packed, self.endpoint[1], offset).encode().hex().upper()

    monkeypatch.setattr(worlds, "Broker", Elsewhere)
    monkeypatch.setattr(worlds, "text", write)


def four(broker: Broker) -> str:
    return f"10.0.{broker.subnet}.{broker.number}"


def six(broker: Broker) -> str:
    return f"fd00::{broker.subnet}:{broker.number}"


def over_ipv6(monkeypatch: pytest.MonkeyPatch, write: Write) -> None:
    """From now on worlds have IPv6 alone."""
    writing(monkeypatch, write, six)
    monkeypatch.setattr(worlds, "CONTROLLER", ("fd00::c:1", 9878))
    monkeypatch.setattr(worlds, "NAME_SERVER", ("fd00::c:2", 9876))
    monkeypatch.setattr(worlds, "ADMIN", "fd00::c:3")
    monkeypatch.setattr(worlds, "PRODUCER", "fd00::c:4")
    monkeypatch.setattr(clients, "PRODUCER", "fd00::c:4")


def with_a_loss() -> World:
    world = two_brokers()
    world.send(3)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(3)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    world.alter((1, 2))
    world.query()
    world.query_epochs(2)
    return world


def told(found: Judgement) -> tuple[object, ...]:
    findings = [(each.group, each.invariant, each.verdict, each.counts) for each in found.findings]
    losses = [(each.group, each.epoch, each.acknowledged) for each in found.losses]
    return findings, losses, [(each.group, each.acknowledged, each.followed) for each in found.sends]


def unnamed(told: tuple[object, ...]) -> list[object]:
    """The same without the names of groups."""
    return [sorted(str(each[1:]) for each in rows) for rows in told if isinstance(rows, list)]


@pytest.fixture(scope="module")
def expected() -> tuple[object, ...]:
    found = judged(pcap(with_a_loss().traffic.packets()))
    assert [each.acknowledged for each in found.losses] == [3]
    return told(found)


@pytest.mark.parametrize(
    "write", [plain, bare, whole, bare_whole, in_turns()], ids=lambda each: each.__name__
)
def test_forms_of_an_ipv6_address_are_one(
    write: Write, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    over_ipv6(monkeypatch, write)
    assert told(judged(pcap(with_a_loss().traffic.packets()))) == expected


@pytest.mark.parametrize("write", [bare, whole, in_turns()], ids=lambda each: each.__name__)
def test_a_redacted_capture_of_ipv6_tells_the_same(
    write: Write, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over_ipv6(monkeypatch, write)
    (tmp_path / "in.pcap").write_bytes(pcap(with_a_loss().traffic.packets()))
    redact(tmp_path / "in.pcap", tmp_path / "shown.pcap", b"a key of some bytes")
    shown = (tmp_path / "shown.pcap").read_bytes()
    assert b"fd00" not in shown
    assert unnamed(told(judged(shown))) == unnamed(expected)


def outside(end: Endpoint) -> Endpoint:
    """What clients take for the place of a broker."""
    return (end[0].replace("fd00::1:", "fd00::ff:"), end[1]) if end[1] == 10911 else end


@pytest.mark.parametrize("write", [plain, bare, whole, bare_whole], ids=lambda each: each.__name__)
def test_both_sides_of_a_translation_of_ipv6_are_called_as_the_traffic_says(
    write: Write, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over_ipv6(monkeypatch, write)
    packets = []
    for each in with_a_loss().traffic.packets():
        packets.append(each)
        source, destination = outside(each.source), outside(each.destination)
        if (source, destination) != (each.source, each.destination):
            way_ns = 20_000 if source != each.source else -20_000
            other = replace(each, source=source, destination=destination, time_ns=each.time_ns + way_ns)
            packets.append(other)
    (tmp_path / "one.pcap").write_bytes(pcap(sorted(packets, key=lambda each: each.time_ns)))
    made = merge([tmp_path / "one.pcap"], tmp_path / "story.pcapng")
    assert {each.shown for each in made.renamings} == {"[fd00::1:1]:10911", "[fd00::1:2]:10911"}
    assert told(judged((tmp_path / "story.pcapng").read_bytes())) == expected


@pytest.mark.parametrize("write", [mapped, named])
def test_what_stands_for_an_ipv4_address_is_that_address(
    write: Write, expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing(monkeypatch, write, four)
    assert told(judged(pcap(with_a_loss().traffic.packets()))) == expected


# ---- single rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "field", "one"),
    [
        (Handshake(*PLACE, text="fd00:0:0:0:0:0:1:2:10911"), "text", "[fd00::1:2]:10911"),
        (Cleaned(*PLACE, text="A.svc:1;[::ffff:a00:102]:2"), "text", "a.svc:1;10.0.1.2:2"),
        (Cleaned(*PLACE, text="1;2"), "text", "1;2"),
        (Fact(*PLACE, named_by="address", master="A:1"), "master", "a:1"),
        (Fact(*PLACE, named_by="address", members=["A:1", "B:2"]), "members", ["a:1", "b:2"]),
        (Fact(*PLACE, named_by="id", members=["1", "2"]), "members", ["1", "2"]),
        (Alive(*PLACE, name="Broker-A:1", address="A:1"), "name", "Broker-A:1"),
    ],
)
def test_addresses_alone_are_written_anew(row: Observation, field: str, one: object) -> None:
    assert getattr(in_one_form(row), field) == one


def alive(order: int, host: str, name: str) -> Alive:
    """A heartbeat from a host."""
    connection = f"{host}:5000<->10.0.0.1:9878#1"
    return Alive("a.pcap", order, order, connection, 0, 0, 0, name="broker-a", address=f"{name}:10911")


def asked(order: int, name: str) -> Fact:
    return Fact("a.pcap", order, order, "x:1<->y:2#1", 0, 0, 0, master_address=f"{name}:10911")


def test_a_name_that_moves_is_where_it_was_at_the_time() -> None:
    beats = [alive(at, host, "a") for at, host in ((10, "10.0.1.1"), (20, "10.0.1.1"), (40, "10.0.1.2"))]
    rows = behind_names([*beats, *(asked(order, "a") for order in (5, 15, 30, 45))])
    assert [row.address for row in rows[:3]] == ["10.0.1.1:10911", "10.0.1.1:10911", "10.0.1.2:10911"]
    where = [row.master_address for row in rows[3:]]
    assert where == ["10.0.1.1:10911", "10.0.1.1:10911", "a:10911", "10.0.1.2:10911"]


def test_two_brokers_that_come_from_one_host_are_not_taken_for_one() -> None:
    rows = behind_names([alive(10, "10.0.9.9", "a"), alive(20, "10.0.9.9", "b")])
    assert [row.address for row in rows] == ["a:10911", "b:10911"]


def test_a_name_that_nobody_calls_itself_by_stays() -> None:
    rows = behind_names([alive(10, "10.0.1.1", "a"), asked(20, "b")])
    assert rows[1].master_address == "b:10911"
