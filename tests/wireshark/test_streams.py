"""What the captures do not hold: other releases, numbers with two meanings, IPv6, preferences, odd cuts."""

from __future__ import annotations

from pathlib import Path

from replispec.wire.rocketmq import ha
from replispec.wire.rocketmq.codes import ResponseCode
from tests.wireshark.samples import (
    IPV6_HOSTS,
    MASTER,
    all_frames,
    answer,
    configuration,
    election,
    log_bytes,
    master_frames,
    replica_frames,
    talk,
    write,
)
from tests.wireshark.tshark_run import Item, packets, run_tshark

BOTH_NAMES = (
    "CONTROLLER_ELECT_MASTER_FAILED (apache@5.0.0..5.1.0) or CONTROLLER_MASTER_STILL_EXIST (apache@5.1.1..)"
)


def shown(path: Path, home: Path, *preferences: str) -> list[Item]:
    """All frames that tshark sees, in order."""
    found = packets(path, home, preferences=preferences)
    return [item for number in sorted(found) for item in found[number]]


def messages(items: list[Item]) -> list[str | None]:
    return [item.value_of("rocketmq_ha.message") for item in items]


def test_each_kind_of_frame_is_known_by_its_own_bytes(tmp_path: Path, tshark_home: Path) -> None:
    talks = [packet for number, part in enumerate(all_frames()) for packet in talk(number, [part])]
    items = shown(write(tmp_path / "kinds.pcap", talks), tshark_home)
    commands = [item for item in items if item.name == "rocketmq"]
    assert [item.value_of("rocketmq.opaque") for item in commands] == ["1", "2", "1", "2"]
    assert messages([item for item in items if item.name == "rocketmq_ha"]) == [
        "HaHandshakeId",
        "HaHandshakeAddress",
        "HaReport",
        "HaHandshakeAnswer",
        "HaTransferHeader",
        "HaTransferHeader",
    ]


def test_frames_are_found_wherever_tcp_cuts_them(tmp_path: Path, tshark_home: Path) -> None:
    parts = [(election(1) + election(2, binary=True), True), (answer(1) + answer(2, binary=True), False)]
    pieces = [(data[at : at + 50], way) for data, way in parts for at in range(0, len(data), 50)]
    items = shown(write(tmp_path / "cuts.pcap", talk(0, pieces)), tshark_home)
    assert [item.value_of("rocketmq.opaque") for item in items] == ["1", "2", "1", "2"]
    assert [item.value_of("rocketmq.request_in") for item in items[:2]] == [None, None]
    assert None not in [item.value_of("rocketmq.request_in") for item in items[2:]]


def test_a_number_that_changed_its_meaning_has_both_names(tmp_path: Path, tshark_home: Path) -> None:
    codes = (ResponseCode.CONTROLLER_ELECT_MASTER_FAILED_UNTIL_5_1_0, ResponseCode.CONTROLLER_NOT_LEADER)
    parts = [part for code in codes for part in ((election(1), True), (answer(1, code), False))]
    items = shown(write(tmp_path / "names.pcap", talk(0, parts)), tshark_home)
    names = [item.value_of("rocketmq.code_name") for item in items]
    assert names[1::2] == [BOTH_NAMES, "CONTROLLER_NOT_LEADER"]


def test_bodies_are_shown_as_java_writes_them(tmp_path: Path, tshark_home: Path) -> None:
    """Numbers as keys stand there without quotes; a configuration is lines of text."""
    members = b'{"brokerMemberGroup":{"brokerAddrs":{1:"a:1"},"cluster":null},"syncStateSet":[1,2]}'
    parts = [(election(1), True), (answer(1, body=members), False)]
    parts += [(configuration(2), True), (answer(2, body=b"a=1\nb=2\r\n"), False)]
    items = shown(write(tmp_path / "bodies.pcap", talk(0, parts)), tshark_home)
    assert items[1].values("rocketmq.json") == [
        "{}",
        "brokerMemberGroup: {}",
        "brokerAddrs: {}",
        "1: a:1",
        "cluster: null",
        "syncStateSet: []",
        "[0]: 1",
        "[1]: 2",
    ]
    assert items[3].values("rocketmq.line") == ["a=1", "b=2"]


def test_a_request_knows_its_answer_when_packets_are_read_twice(tmp_path: Path, tshark_home: Path) -> None:
    """As Wireshark reads them, which may go back and forth."""
    parts = [(election(1), True), (election(2), True), (answer(2), False), (answer(1), False)]
    path = write(tmp_path / "twice.pcap", talk(0, parts))
    fields = ("frame.number", "rocketmq.request_in", "rocketmq.response_in", "rocketmq.response_time")
    arguments = [argument for name in fields for argument in ("-e", name)]
    printed = run_tshark(path, tshark_home, "-2", "-Y", "rocketmq", "-T", "fields", *arguments)
    assert [line.split("\t") for line in printed.splitlines()] == [
        ["4", "", "7", ""],
        ["5", "", "6", ""],
        ["6", "5", "", "0.001000000"],
        ["7", "4", "", "0.003000000"],
    ]


def test_records_are_shown_as_far_as_they_are_whole(tmp_path: Path, tshark_home: Path) -> None:
    path = write(tmp_path / "log.pcap", talk(0, [(master_frames()[1], False)]))
    (item,) = shown(path, tshark_home)
    record, long, blank = item.below("rocketmq_log")
    assert (record.value_of("rocketmq_log.topic"), long.value_of("rocketmq_log.topic")) == (
        "TopicA",
        "T" * 300,
    )
    assert long.value_of("rocketmq_log.sys_flag") == str(IPV6_HOSTS)
    assert long.value_of("rocketmq_log.store_ip") == ":".join(["00"] * 15 + ["02"])
    assert blank.value_of("rocketmq_log.message") == "LogBlank"
    assert item.value_of("rocketmq_ha.body_size") == str(len(log_bytes()))


def test_lists_of_epochs_are_shown_entry_by_entry(tmp_path: Path, tshark_home: Path) -> None:
    (item,) = shown(write(tmp_path / "epochs.pcap", talk(0, [(master_frames()[0], False)])), tshark_home)
    entries = item.below("rocketmq_ha.entries.element")
    assert [entry.value_of("rocketmq_ha.entries.start_offset") for entry in entries] == ["0", "4096"]


def test_answers_of_the_first_release_are_read_when_one_says_so(tmp_path: Path, tshark_home: Path) -> None:
    entries = [ha.HaEpochEntry(1, 0), ha.HaEpochEntry(2, 512)]
    padded = ha.HaHandshakeAnswerPadded(max_offset=1024, last_epoch=2, entries=entries).encode()
    parts = [(replica_frames()[1], True), (padded + master_frames()[2], False)]
    path = write(tmp_path / "padded.pcap", talk(0, parts))
    items = shown(path, tshark_home, "rocketmq_ha.padded_answers:TRUE")
    assert messages(items) == ["HaHandshakeAddress", "HaHandshakeAnswerPadded", "HaTransferHeader"]
    assert items[1].below("rocketmq_ha.entries.element")[1].value_of("rocketmq_ha.entries.epoch") == "2"


def test_replication_without_a_controller_is_read_on_ports_that_one_names(
    tmp_path: Path, tshark_home: Path
) -> None:
    transfer = ha.HaLegacyTransferHeader(offset=64, body=log_bytes()).encode()
    parts = [(ha.HaLegacyReport(max_offset=64).encode(), True), (transfer, False)]
    path = write(tmp_path / "legacy.pcap", talk(0, parts))
    assert shown(path, tshark_home) == []
    items = shown(path, tshark_home, f"rocketmq_ha.legacy_ports:{MASTER[1]}")
    assert messages(items) == ["HaLegacyReport", "HaLegacyTransferHeader"]
    assert [item.value_of("rocketmq_ha.max_offset") for item in items] == ["64", None]


def test_ports_are_taken_that_one_names(tmp_path: Path, tshark_home: Path) -> None:
    """The first segment is too short to be known by its bytes."""
    data = election(5)
    path = write(tmp_path / "ports.pcap", talk(0, [(data[:6], True), (data[6:], True)]))
    assert shown(path, tshark_home) == []
    (item,) = shown(path, tshark_home, "rocketmq.ports:9876,10900-10920")
    assert item.value_of("rocketmq.opaque") == "5"


def test_the_list_of_packets_names_every_frame(tmp_path: Path, tshark_home: Path) -> None:
    """What is no frame keeps the words of TCP."""
    parts = [(election(1) + election(2), True), (b"no frame of ours", True), (replica_frames()[2], False)]
    printed = run_tshark(write(tmp_path / "list.pcap", talk(0, parts)), tshark_home).splitlines()
    words = "request CONTROLLER_ELECT_MASTER, opaque"
    assert printed[3].split("RocketMQ")[1].split(maxsplit=1)[1].split("  ")[:2] == [
        f"{words} 1",
        f"{words} 2",
    ]
    assert "RocketMQ" not in printed[4]
    assert "Len=16" in printed[4]
