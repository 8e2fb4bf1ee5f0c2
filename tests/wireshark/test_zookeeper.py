"""ZooKeeper's bytes as the dissector shows them: value by value what our decoder says, and no failure."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from replispec.runtime.primitives.exchanges import OpenRequests
from replispec.wire.zookeeper.commands import REPLY_FRAME
from replispec.wire.zookeeper.connection import (
    AdminWordFrame,
    ConnectRequest,
    ConnectResponse,
    ReplyFrame,
    RequestFrame,
)
from tests.wire_zookeeper.forms import golden
from tests.wire_zookeeper.test_real_bytes import CONNECTIONS, WAITING_MAX, has_a_session
from tests.wireshark.samples import talk, write
from tests.wireshark.tshark_run import ROOT, Item, packets, run_tshark

DISSECTOR = ROOT / "generated/wireshark/zookeeper.lua"
RECORDED = ROOT / "tests/wire_zookeeper/captures/zookeeper_3_5_9.pcap"
SERVER = ("10.2.0.1", 40_999)
# What follows from the rest, or stands beside it in the tree.
NOT_COMPARED = {"size", "done", "message", "request_code", "request_in", "response_in", "element", "text"}
TREES = ("-V", "-O", "zookeeper")
Leaves = list[tuple[str, str]]


def leaves(message: Any) -> Iterator[tuple[str, str]]:
    """(attribute, value as tshark writes it) of a message and what lies in it, in the order of the bytes."""
    for name in (each.name for each in dataclasses.fields(message)):
        value = getattr(message, name)
        for one in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(one):
                yield from leaves(one)
            elif isinstance(one, bytes):
                yield from [(name, ":".join(f"{byte:02x}" for byte in one))] if one and name != "body" else []
            elif one is not None:
                yield name, str(int(one)) if isinstance(one, bool | int) else one


def decoded(frames: list[tuple[str, bytes]]) -> Iterator[Leaves]:
    """What our decoder says of each frame of a connection."""
    pairing, opened = OpenRequests(REPLY_FRAME, most=WAITING_MAX), set()
    for side, data in frames:
        if side not in opened:
            opened.add(side)
            first: Any = ConnectRequest if side == "C" else ConnectResponse
            yield [*leaves(first.decode(data))]
        elif side == "C":
            request = RequestFrame.decode(data)
            pairing.ask(request)
            body = REPLY_FRAME.read_request(request)
            yield [*leaves(request), *(leaves(body) if body is not None else ())]
        else:
            reply = ReplyFrame.decode(data)
            answer = pairing.answered(reply).message
            yield [*leaves(reply), *(leaves(answer) if answer is not None else ())]


def shown(item: Item) -> Leaves:
    """The same of a frame as tshark shows it, but for constants, and for the line of a list that is none."""
    found = []
    for each in item.walk():
        name = each.name.rpartition(".")[2]
        is_constant = each.name == "zookeeper.operations.error"
        if not each.items and each.name.startswith("zookeeper.") and not is_constant:
            found.append((name, each.value))
    return [
        (name, value) for name, value in found if name not in NOT_COMPARED and (name, value) != ("acl", "")
    ]


def test_the_dissector_says_of_real_bytes_what_our_decoder_says(tmp_path: Path, tshark_home: Path) -> None:
    talks, wanted = [], []
    for number, frames in CONNECTIONS.items():
        if has_a_session(frames):
            talks += talk(number, [(data, side == "C") for side, data in frames], server=SERVER)
            wanted += [*decoded(frames)]
    path = write(tmp_path / "real.pcap", talks)
    seen = packets(path, tshark_home, dissector=DISSECTOR, protocols=("zookeeper",))
    assert [shown(item) for number in sorted(seen) for item in seen[number]] == wanted


def test_an_answer_leads_to_its_request(tmp_path: Path, tshark_home: Path) -> None:
    frames = CONNECTIONS[0]
    parts = [(data, side == "C") for side, data in frames]
    path = write(tmp_path / "pairs.pcap", talk(0, parts, server=SERVER))
    seen = packets(path, tshark_home, dissector=DISSECTOR, protocols=("zookeeper",))
    xids = {number: items[-1].value_of("zookeeper.xid") for number, items in seen.items()}
    asked = {
        number: int(to) for number, items in seen.items() for to in items[-1].values("zookeeper.request_in")
    }
    assert {number: xids[to] for number, to in asked.items()} == {number: xids[number] for number in asked}
    assert len(asked) == sum(side == "C" for side, _ in frames) - 1


def test_a_capture_of_a_real_server_has_nothing_malformed(tshark_home: Path) -> None:
    said = run_tshark(RECORDED, tshark_home, "-Y", "zookeeper", dissector=DISSECTOR)
    assert "answer SYNC" in said
    assert run_tshark(RECORDED, tshark_home, "-Y", "zookeeper.malformed", dissector=DISSECTOR) == ""


def test_a_word_and_its_answer_are_shown(tmp_path: Path, tshark_home: Path) -> None:
    word = AdminWordFrame(0x72756F6B).encode()
    path = write(tmp_path / "word.pcap", talk(0, [(word, True), (b"imok", False)], server=SERVER))
    seen = packets(path, tshark_home, dissector=DISSECTOR, protocols=("zookeeper",))
    items = [item for number in sorted(seen) for item in seen[number]]
    assert items[0].values("zookeeper.word") == [str(0x72756F6B)]
    assert items[1].values("zookeeper.text") == ["imok"]


def test_cut_and_turned_bytes_are_shown_as_far_as_they_go(tmp_path: Path, tshark_home: Path) -> None:
    rng = random.Random(5)
    connect = ConnectRequest(password=bytes(16), read_only=False).encode()
    talks = []
    for number, example in enumerate(golden()):
        data = bytearray(RequestFrame(1, rng.choice([1, 2, 3, 4, 5, 8, 12, 14, 101]), example.data).encode())
        answer = bytearray(ReplyFrame(1, 5, 0, example.data).encode())
        for broken in (data, answer):
            for _ in range(3):
                broken[rng.randrange(8, len(broken))] ^= 1 << rng.randrange(8)
        parts = [(connect, True), (bytes(data), True), (ConnectResponse(timeout=1).encode(), False)]
        talks += talk(number, [*parts, (bytes(answer), False), (rng.randbytes(60), False)], server=SERVER)
    run_tshark(write(tmp_path / "broken.pcap", talks), tshark_home, *TREES, dissector=DISSECTOR)
