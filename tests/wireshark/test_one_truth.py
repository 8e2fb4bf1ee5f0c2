"""What is changed in the specification changes in Wireshark, with no second place to edit."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.generate import generate, write
from replispec.compiler.model.message import SpecificationError
from tests.compiler.specification import changed
from tests.wireshark.tshark_run import ROOT, Item, packets

CAPTURE = ROOT / "spark_replay/captures/t_binary_header.pcap"
MESSAGES = "proto/replispec/rocketmq/v1"
ADDRESS = "rocketmq.ext.register_broker_to_controller_request.broker_address"
# Where the epoch of a run started, and what is confirmed: two fields of one size.
OFFSETS = (
    "  int64 epoch_start_offset = 5 [(wire) = {size: 8  unit: LOG_BYTES}];\n"
    '  int64 confirm_offset     = 6 [(wire) = {size: 8  unit: LOG_BYTES  clause: "RIP44-CONFIRM-1"}];\n'
)
TRANSFERS = ("rocketmq_ha.epoch_start_offset", "rocketmq_ha.confirm_offset")


def frames(home: Path, dissector: Path) -> list[Item]:
    found = packets(CAPTURE, home, dissector=dissector)
    return [item for number in sorted(found) for item in found[number]]


def values(items: list[Item], name: str) -> list[str]:
    return [value for item in items for value in item.values(name)]


@pytest.fixture(scope="module")
def before_and_after(tmp_path_factory: pytest.TempPathFactory, tshark_home: Path) -> list[list[Item]]:
    """What tshark shows of one capture by the specification as it is, and by a copy with two changes."""
    target = tmp_path_factory.mktemp("one-truth")
    changed(
        target,
        f"{MESSAGES}/controller.proto",
        "  string broker_address = 4;\n  int64  invoke_time    = 5",
        '  string broker_address = 4 [(wire) = {key: "addressOfBroker"}];\n  int64  invoke_time    = 5',
    )
    swapped = "".join(reversed(OFFSETS.splitlines(keepends=True)))
    copy = changed(target, f"{MESSAGES}/ha.proto", OFFSETS, swapped)
    write(generate(copy), target / "other")
    other = target / "other/wireshark/rocketmq.lua"
    return [frames(tshark_home, ROOT / "generated/wireshark/rocketmq.lua"), frames(tshark_home, other)]


def test_another_key_is_looked_for(before_and_after: list[list[Item]]) -> None:
    before, after = before_and_after
    assert values(before, ADDRESS)
    assert values(after, ADDRESS) == []
    assert values(after, "rocketmq.ext_fields.value") == values(before, "rocketmq.ext_fields.value")


def test_another_place_is_read(before_and_after: list[list[Item]]) -> None:
    before, after = before_and_after
    starts, confirmed = (values(before, name) for name in TRANSFERS)
    assert starts != confirmed
    assert [values(after, name) for name in TRANSFERS] == [confirmed, starts]


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        (
            "remoting.proto",
            "  int32  flag     = 5",
            "  int32  kind_bits = 5",
            "the dissector needs RemotingHeader.flag",
        ),
        (
            "ha.proto",
            "int64 unused_confirm_offset     = 6",
            "int64 message = 6",
            "the filter rocketmq_ha.message has another meaning",
        ),
    ],
    ids=["a field that it needs", "a name that it gives"],
)
def test_what_the_dissector_cannot_show_is_refused(
    tmp_path: Path, file: str, old: str, new: str, complaint: str
) -> None:
    copy = changed(tmp_path, f"{MESSAGES}/{file}", old, new)
    # Golden bytes name fields, too, and would be refused first.
    (copy / "vectors" / "rocketmq" / "messages.yaml").unlink()
    with pytest.raises(SpecificationError, match=complaint):
        generate(copy)
