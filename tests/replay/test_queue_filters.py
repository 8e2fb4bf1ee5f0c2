"""What consumers say in heartbeats that they want: what a filter hides is not missed, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from replispec.replay.events.rocketmq.sends import tag_code
from replispec.replay.judges.findings import FindingRow
from replispec.runtime.rocketmq.log import tags_code
from replispec.wire.rocketmq.codes import RequestCode
from tests.replay.faults import taken, written
from tests.replay.pcap_writer import pcap
from tests.replay.queue_faults import spoken
from tests.replay.queues import CONSUMER, Stored, World, static_topic
from tests.replay.test_queues import judged_packets

PUSHED = "pushed"
VERSION = 1_700_000_000_555
TAGS = ("A", "B", "A", "", "C", "A")


def told(
    *,
    wants: str = "A || C",
    read: Sequence[int] = (0, 2, 4, 5),
    kind: str = "TAG",
    version: int = VERSION,
    more: str | None = None,
    beats: bool = True,
    body: bytes | None = None,
) -> tuple[World, list[Stored]]:
    """A group says in a heartbeat what it wants of six messages, and one pull hands it some of them;
    `more`: what another member says that it wants."""
    world = static_topic()
    own = [world.store("broker-b", 0) for _ in TAGS]
    for each, tag in zip(own, TAGS, strict=True):
        world.send("broker-b", 1, each, each.queue_offset, tag=tag)
    if beats:
        world.heartbeat("broker-b", wants, VERSION, group=PUSHED, kind=kind, body=body)
    if more is not None:
        world.heartbeat("broker-b", more, VERSION + 1, group=PUSHED)
    found = [own[each] for each in read]
    world.pull(CONSUMER, "broker-b", (1, 2), found, 8, 0, group=PUSHED, wants=None, version=version)
    return world, own


def verdicts_of(world: World, folder: Path) -> dict[str, FindingRow]:
    path = folder / "told.pcap"
    path.write_bytes(pcap(world.packets(), nanoseconds=True))
    found = judged_packets(written(spoken(taken(path), "PYTHON")), path)
    return {each.invariant: each for each in found}


def test_what_a_filter_hides_is_not_missed(tmp_path: Path) -> None:
    found = verdicts_of(told()[0], tmp_path)
    assert {each.verdict.value for each in found.values() if each.evaluated} == {"ok"}
    everything = verdicts_of(told(wants="*", read=range(6))[0], tmp_path)
    hidden = everything["acknowledged-is-read"].evaluated - found["acknowledged-is-read"].evaluated
    assert hidden == len([each for each in TAGS if each not in ("A", "C")])


@pytest.mark.parametrize(
    ("wants", "read"), [("A || C", (0, 2, 5)), ("A||C", (0, 4, 5)), ("*", (0, 1, 2, 4, 5))]
)
def test_what_a_filter_shows_is_missed(wants: str, read: Sequence[int], tmp_path: Path) -> None:
    found = verdicts_of(told(wants=wants, read=read)[0], tmp_path)
    assert found["acknowledged-is-read"].verdict == "violated"
    assert found["acknowledged-is-read"].counts["violated"] == 1


def test_a_group_that_wants_all_by_its_heartbeats_is_handed_all(tmp_path: Path) -> None:
    found = verdicts_of(told(wants="*", read=(0, 1, 3, 4, 5))[0], tmp_path)
    assert found["reads-are-contiguous"].verdict == "violated"


def test_who_wants_some_is_handed_nothing_from_before(tmp_path: Path) -> None:
    world, own = told()
    world.pull(CONSUMER, "broker-b", (1, 5), own[2:], 8, 0, group=PUSHED, wants=None, version=VERSION)
    assert verdicts_of(world, tmp_path)["reads-are-contiguous"].verdict == "violated"


def test_tags_in_the_pull_itself_are_a_filter_too(tmp_path: Path) -> None:
    for read, verdict in (((0, 2, 5), "ok"), ((0, 5), "violated")):
        world, own = told(beats=False, read=(0,))
        found = [own[each] for each in read]
        world.pull(CONSUMER, "broker-b", (1, 2), found, 8, 0, group="pulled", wants="A")
        deliveries = verdicts_of(world, tmp_path)["acknowledged-is-read"]
        assert (deliveries.counts.get("violated", 0) > 0) == (verdict == "violated")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"beats": False}, "no heartbeat of it"),
        ({"version": VERSION + 7}, "of the version that its pull names"),
        ({"more": "B"}, "different things"),
        ({"kind": "SQL92", "wants": "a > 5"}, "another expression than tags"),
        ({"body": b"{"}, "no heartbeat of it"),
    ],
    ids=["none", "another version", "two wishes", "an expression", "not read"],
)
def test_where_it_is_not_known_what_a_group_wants_the_reason_is_told(
    said: dict[str, object], why: str, tmp_path: Path
) -> None:
    found = verdicts_of(told(read=(0,), **said)[0], tmp_path)  # type: ignore[arg-type]
    assert found["acknowledged-is-read"].verdict == "unknown"
    assert any(why in each.text for each in found["acknowledged-is-read"].proofs)
    assert "violated" not in {each.verdict.value for each in found.values()}


def test_a_heartbeat_that_was_not_read_leaves_all_of_them_in_doubt(tmp_path: Path) -> None:
    world, _ = told(read=(0,))
    world.heartbeat("broker-b", "B", 5, group="others", body=b"{")
    assert verdicts_of(world, tmp_path)["acknowledged-is-read"].verdict == "unknown"


@pytest.mark.parametrize(
    "properties",
    ["TAGS\x01A\x02", "UNIQ_KEY\x01x\x02TAGS\x01B", "XTAGS\x01C\x02", "", "TAGS\x01a\x02TAGS\x01b\x02"],
)
def test_the_tag_of_a_message_is_read_as_brokers_read_it(properties: str) -> None:
    said = {"i": properties}
    assert tag_code(RequestCode.SEND_MESSAGE_V2, said) == tags_code(properties.encode())
    assert tag_code(RequestCode.SEND_BATCH_MESSAGE, said) is None
