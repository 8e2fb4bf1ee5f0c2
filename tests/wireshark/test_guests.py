"""Messages of a family that is a guest in another one's streams are told by name, by its specification."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from replispec.compiler.generate import generate, write
from replispec.replay.capture.files import open_capture
from replispec.replay.engines.decoding import decode_capture
from replispec.wire.raft.codes import RequestCode
from replispec.wire.raft.commands import REQUEST_BODIES, REQUEST_HEADERS
from tests.compiler.specification import changed
from tests.replay.agreement import CAPTURE
from tests.wireshark.tshark_run import DISSECTOR, Item, packets

ROUND, PREV_INDEX = (f"rocketmq.ext.raft_entries_request.{name}" for name in ("round", "prev_index"))


def shown(home: Path, dissector: Path = DISSECTOR) -> list[Item]:
    """Members' messages of a real group, as tshark shows them in the order of the capture."""
    found = packets(CAPTURE, home, dissector=dissector)
    items = [item for number in sorted(found) for item in found[number]]
    return [item for item in items if int(item.value_of("rocketmq.code") or 0) in REQUEST_HEADERS]


def test_every_message_of_members_has_its_name_and_its_typed_fields(tshark_home: Path) -> None:
    with open_capture(CAPTURE) as capture:
        offsets = capture.records().record_offset.tolist()
    rows = decode_capture(CAPTURE).frames.to_pylist()
    own = [row for row in rows if row["code"] in REQUEST_HEADERS and not row["flag"] & 1]
    assert {*offsets} >= {row["record_offset"] for row in own}
    expected, seen = Counter[str](), Counter[str]()
    for row in own:
        header: Any = REQUEST_HEADERS[row["code"]].from_ext_fields(dict(row["ext_fields"]))
        expected[f"{RequestCode(row['code']).name} {type(header).__name__} {header.term}"] += 1
    for item in shown(tshark_home):
        (term,) = (each.value for each in item.walk() if each.name.endswith(".term"))
        seen[f"{item.value_of('rocketmq.code_name')} {item.value_of('rocketmq.message')} {term}"] += 1
    assert seen == expected
    assert len({name.split()[0] for name in seen}) > 3


def test_a_body_that_is_no_json_is_named(tshark_home: Path) -> None:
    items = [each for each in shown(tshark_home) if each.value_of("rocketmq.body_size") is not None]
    assert items
    assert {int(each.value_of("rocketmq.code") or 0) for each in items} <= {*REQUEST_BODIES}


def test_what_changes_in_a_guest_changes_in_wireshark(tshark_home: Path, tmp_path: Path) -> None:
    old = "  int64  round      = 8;"
    new = '  int64  round      = 8 [(wire) = {key: "askedRound"}];'
    copy = changed(tmp_path, "proto/replispec/raft/v1/member.proto", old, new)
    write(generate(copy), tmp_path / "other")
    before, after = shown(tshark_home), shown(tshark_home, tmp_path / "other/wireshark/rocketmq.lua")
    rounds, prev = (
        [[value for item in items for value in item.values(name)] for items in (before, after)]
        for name in (ROUND, PREV_INDEX)
    )
    assert rounds[0]
    assert rounds[1] == []
    assert prev[0] == prev[1] != []
