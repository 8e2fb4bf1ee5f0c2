"""tshark with the generated dissector sees in every capture, frame by frame, what our own decoder sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.frames.hints import Hints
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import LanguageCode, RemotingFlag
from replispec.wire.rocketmq.commands import REQUEST_HEADERS, RESPONSE_HEADERS
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.streams import COMMIT_LOG
from tests.wireshark.tshark_run import ROOT, Item, packets

CAPTURES = sorted((ROOT / "spark_replay/captures").glob("*.pcap"))
NUMBERS = ("code", "flag", "opaque", "version", "serialize_type")
# Columns of our table that are fields of replication messages under the same name.
HA_NUMBERS = (
    *("state", "broker_id", "max_offset", "last_epoch", "offset"),
    *("epoch", "epoch_start_offset", "confirm_offset"),
)
HA_FLAGS = ("sync_from_last_file", "async_learner")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One capture, seen twice: our rows and tshark's frames, both by the number of the packet."""

    name: str
    ours: dict[int, list[Row]]
    theirs: dict[int, list[Item]]

    def both(self) -> Iterator[tuple[Row, Item]]:
        """Each frame with its twin, in the order of the capture."""
        for number in sorted(self.ours):
            yield from zip(self.ours[number], self.theirs[number], strict=True)


def our_rows(path: Path) -> dict[int, list[Row]]:
    """Packet number -> the frames that it completed, in the order of the stream."""
    with open_capture(path) as capture:
        offsets = capture.records().record_offset.tolist()
    number_of = {offset: number for number, offset in enumerate(offsets, start=1)}
    found: dict[int, list[Row]] = {}
    for row in decode_capture(path, Hints(keep_bodies=True)).frames.to_pylist():
        found.setdefault(number_of[row["record_offset"]], []).append(row)
    return found


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.stem)
def seen(request: pytest.FixtureRequest, tshark_home: Path) -> Seen:
    path: Path = request.param
    return Seen(path.stem, our_rows(path), packets(path, tshark_home))


def numbers(item: Item, protocol: str, names: Sequence[str]) -> dict[str, int | None]:
    values = {name: item.value_of(f"{protocol}.{name}") for name in names}
    return {name: None if value is None else int(value) for name, value in values.items()}


def truth(value: str | None) -> bool | None:
    return None if value is None else value in ("1", "True")


def entries(item: Item) -> dict[str, str | None] | None:
    """The extension fields as our table has them; None when there are none."""
    keys = item.below("rocketmq.ext_fields.key")
    found = {key.value: key.value_of("rocketmq.ext_fields.value") for key in keys}
    return found or None


def remoting_values(item: Item) -> Row:
    language = item.value_of("rocketmq.language")
    return {
        **numbers(item, "rocketmq", NUMBERS),
        "language": None if language is None else LanguageCode(int(language)).name,
        "remark": item.value_of("rocketmq.remark"),
        "ext_fields": entries(item),
        "body_size": int(item.value_of("rocketmq.body_size") or 0),
    }


def ha_values(item: Item) -> Row:
    lists = item.below("rocketmq_ha.entries.element")
    epochs = [numbers(element, "rocketmq_ha.entries", ("epoch", "start_offset")) for element in lists]
    has_epochs = item.value_of("rocketmq_ha.message") == "HaHandshakeAnswer"
    return {
        "message": item.value_of("rocketmq_ha.message"),
        **numbers(item, "rocketmq_ha", HA_NUMBERS),
        **{name: truth(item.value_of(f"rocketmq_ha.{name}")) for name in HA_FLAGS},
        "broker_address": item.value_of("rocketmq_ha.address"),
        "epochs": epochs if has_epochs else None,
        "body_size": int(item.value_of("rocketmq_ha.body_size") or 0),
    }


def test_every_frame_ends_in_the_same_packet(seen: Seen) -> None:
    ours = {number: [row["protocol"].split("_")[0] for row in rows] for number, rows in seen.ours.items()}
    names = {"rocketmq": "remoting", "rocketmq_ha": "ha"}
    theirs = {number: [names[item.name] for item in items] for number, items in seen.theirs.items()}
    assert theirs == ours


def test_every_field_is_the_same(seen: Seen) -> None:
    for row, item in seen.both():
        values = remoting_values(item) if row["protocol"] == "remoting" else ha_values(item)
        expected = {name: row[name] for name in values}
        if row["protocol"] == "remoting":
            expected["ext_fields"] = dict(row["ext_fields"] or ()) or None
        assert values == expected, f"{seen.name}: the frame at {row['sequence']} of {row['connection']}"


def test_nothing_is_called_malformed(seen: Seen) -> None:
    complaints = [item.name for _, tree in seen.both() for item in tree.walk() if "malformed" in item.name]
    assert complaints == []


def request_codes(seen: Seen) -> dict[int, int | None]:
    """Identity of an answer's row -> the code of its request, found by the opaque as both sides count it."""
    waiting: dict[tuple[str, int, int], int] = {}
    found: dict[int, int | None] = {}
    for row, _ in seen.both():
        if row["protocol"] == "remoting":
            is_answer = bool(row["flag"] & RemotingFlag.RESPONSE)
            key = (row["connection"], row["direction"] ^ is_answer, row["opaque"])
            if is_answer:
                found[id(row)] = waiting.pop(key, None)
            elif not row["flag"] & RemotingFlag.ONEWAY:
                waiting[key] = row["code"]
    return found


def test_every_answer_is_paired_with_its_request(seen: Seen) -> None:
    codes = request_codes(seen)
    for row, item in seen.both():
        if id(row) in codes:
            shown = item.value_of("rocketmq.request_code")
            assert (None if shown is None else int(shown)) == codes[id(row)]
            assert (item.value_of("rocketmq.request_in") is None) == (shown is None)


def typed_values(item: Item) -> dict[str, str]:
    """Field -> value of the typed extension fields."""
    lines = [line for line in item.walk() if line.name.startswith("rocketmq.ext.")]
    return {line.name.rsplit(".", 1)[1]: line.value for line in lines}


def as_text(value: object, shown: str) -> str:
    return str(truth(shown)) if isinstance(value, bool) else shown


def test_typed_extension_fields_are_what_the_codec_reads(seen: Seen) -> None:
    codes = request_codes(seen)
    compared = 0
    for row, item in seen.both():
        if row["protocol"] != "remoting":
            continue
        is_answer = bool(row["flag"] & RemotingFlag.RESPONSE)
        headers: Mapping[int, Any] = RESPONSE_HEADERS if is_answer else REQUEST_HEADERS
        header = headers.get(codes[id(row)] or -1 if is_answer else row["code"])
        fields = dict(row["ext_fields"] or ())
        shown = typed_values(item)
        there = [key for key, text in fields.items() if header and key in header.KEYS and text is not None]
        assert len(shown) == len(there)
        if header is None or not shown:
            continue
        try:
            message = header.from_ext_fields(fields)
        except RemoteProtocolError:
            continue  # a refusal leaves out what an answer must have
        for name, value in shown.items():
            expected = getattr(message, name)
            assert as_text(expected, value) == str(expected), f"{header.__name__}.{name}"
            compared += 1
    assert compared


def records(body: bytes) -> Iterator[LogRecord]:
    """The records that lie whole in `body` from its start on."""
    at = 0
    try:
        while (size := COMMIT_LOG.measure(body, at, len(body))) > 0 and at + size <= len(body):
            yield LogRecord.decode(body, at, at + size)
            at += size
    except RemoteProtocolError:
        return


def test_records_of_the_commit_log_are_the_same(seen: Seen) -> None:
    for row, item in seen.both():
        is_answer = row["protocol"] == "remoting" and bool(row["flag"] & RemotingFlag.RESPONSE)
        has_log = row["protocol"] == "ha_master" or is_answer
        expected = list(records(row["body"])) if has_log and row["body"] else []
        shown = item.below("rocketmq_log")
        assert len(shown) == len(expected)
        for record, lines in zip(expected, shown, strict=True):
            names = ("physical_offset", "queue_id", "queue_offset", "store_timestamp", "body_crc")
            assert numbers(lines, "rocketmq_log", names) == {name: getattr(record, name) for name in names}
            assert lines.value_of("rocketmq_log.topic") == record.topic
            properties = lines.value_of("rocketmq_log.properties") or ""
            assert bytes.fromhex(properties.replace(":", "")) == record.properties
