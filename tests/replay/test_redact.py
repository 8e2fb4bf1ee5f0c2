"""A redacted capture tells the same and names nobody."""

from __future__ import annotations

import ipaddress
import itertools
import json
import random
import re
import string
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.local import LocalEngine
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.frames.hints import Hints
from replispec.replay.redact.images import Image
from replispec.replay.redact.json_texts import JsonTexts, NotDecodedError
from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.replay.redact.rocketmq.frames import _Log
from replispec.replay.redact.rocketmq.records import Records, size_told
from replispec.replay.redact.run import SameAddressError, redact
from replispec.replay.redact.shapes import shapes
from replispec.replay.tcp.pieces import no_pieces
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.constants import UNIQUE_KEY_PROPERTY
from replispec.wire.rocketmq.store import LogBlank, LogRecord
from tests.replay import mess
from tests.replay.agreement import CAPTURE
from tests.replay.defects import DEFECTS
from tests.replay.pcap_writer import Conversation, in_time_order, pcap, section
from tests.replay.random_traffic import command
from tests.replay.test_mess import FILES as OTHERS
from tests.replay.test_mess import header_and_packets

# Members of a group are guests in the streams of another family.
FILES = {**OTHERS, "agreement": CAPTURE}
KEY = b"a key that is only good for tests"
NAMES = Pseudonyms(KEY)
# Losses and replication in a small capture; the other ones take longer.
MESSED = ("failover_lost", "older_copy")
NAME_BYTES_MINIMUM = 5
BODY_BYTES = 12


@cache
def redacted(name: str, folder: Path) -> Path:
    out = folder / FILES[name].name
    redact(FILES[name], out, KEY)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("redacted")


def replayed(path: Path) -> CaptureResult:
    with TemporaryDirectory() as folder:
        (found,) = LocalEngine().results([path], Path(folder), Options(), lambda *_: None)
    return found


def told(found: CaptureResult) -> tuple[object, ...]:
    """All that is counted: nothing that is named."""
    rows = sorted((each.invariant, each.verdict, sorted(each.counts.items())) for each in found.findings)
    losses = sorted(
        (each.epoch, each.from_offset, each.to_offset, each.acknowledged) for each in found.losses
    )
    row = found.capture
    sizes = (row.frames_remoting, row.frames_ha, row.holes, row.bytes_undecoded, row.bytes_foreign)
    return rows, losses, sizes, row.holes_by_reason, row.first_time_ns, row.last_time_ns


@pytest.mark.parametrize("name", FILES)
def test_verdicts_counts_and_losses_stay(name: str, folder: Path) -> None:
    assert told(replayed(redacted(name, folder))) == told(replayed(FILES[name]))


@pytest.mark.parametrize("name", MESSED)
@pytest.mark.parametrize("defect", DEFECTS)
def test_verdicts_of_a_messed_capture_stay(defect: str, name: str, tmp_path: Path) -> None:
    header, packets = header_and_packets(name)
    path, out = tmp_path / "messed.pcap", tmp_path / "redacted.pcap"
    path.write_bytes(mess.written(header, DEFECTS[defect].make(packets, random.Random(f"{name} {defect}"))))
    redact(path, out, KEY)
    assert told(replayed(out)) == told(replayed(path))


@pytest.mark.parametrize("name", FILES)
def test_no_name_address_or_body_is_left(name: str, folder: Path) -> None:
    raw = redacted(name, folder).read_bytes()
    runs = b"\n".join(set(re.findall(rb"[\w.-]{5,}", raw)))
    words, others = names(FILES[name]), set(needles(FILES[name]))
    assert words
    assert {word for word in words if word in runs} == set()
    assert {needle for needle in others if needle in raw} == set()


def names(path: Path) -> set[bytes]:
    """Words of texts that the specification does not declare, by decoders that redaction does not use."""
    frames = decode_capture(path).frames.select(["remark", "ext_fields", "json_body"])
    declared = _declared()
    found: set[bytes] = set()
    for row in frames.to_pylist():
        texts = [row["remark"], *(value for _, value in row["ext_fields"] or ())]
        for text in [*texts, *_json_texts(row["json_body"])]:
            found.update(word for word in _words(text) if word not in declared)
    return found


def needles(path: Path) -> Iterator[bytes]:
    """Addresses in both byte orders and as text, and a piece of every body that holds letters."""
    frames = decode_capture(path, Hints(keep_bodies=True)).frames
    for source in set(frames["source"].to_pylist()):
        address = ipaddress.ip_address(source.rpartition(":")[0].strip("[]"))
        yield from (address.packed, address.packed[::-1], str(address).encode())
    for body in frames["body"].to_pylist():
        if body and body[:1] not in (b"{", b"["):
            pieces = (body[at : at + BODY_BYTES] for at in range(0, len(body) - BODY_BYTES, BODY_BYTES))
            yield from itertools.islice(filter(_was_written, pieces), 2)


def _was_written(piece: bytes) -> bool:
    """Whether these are letters of somebody, no filling and no numbers of a record (which stay)."""
    return len(set(piece)) > BODY_BYTES // 2 and all(chr(byte) in string.printable for byte in piece)


def _words(text: str | None) -> Iterator[bytes]:
    """Everything between signs that is no number."""
    kept = "".join(letter if letter.isalnum() or letter in "._-" else " " for letter in text or "")
    for word in kept.split():
        if len(word) >= NAME_BYTES_MINIMUM and not word.lstrip("-").isdigit():
            yield word.encode()


def _json_texts(body: bytes | None) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(body)] if body else []
    except ValueError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.values(), *value.keys()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value


@cache
def _declared() -> bytes:
    """Keys and words of the protocol, a line each."""
    contents = [item for shape in shapes("rocketmq").values() for item in shape.fields.items()]
    words = {word for _, each in contents for content in each for word in content.words}
    return "\n".join({key for key, _ in contents} | words | {"false", UNIQUE_KEY_PROPERTY}).encode()


def test_what_nobody_understands_becomes_zeros(tmp_path: Path) -> None:
    talk = Conversation(("10.0.0.1", 4000), ("10.0.0.2", 80))
    talk.open()
    talk.send(b"GET /secret-place HTTP/1.1\r\n\r\n", from_client=True)
    path, out = tmp_path / "foreign.pcap", tmp_path / "redacted.pcap"
    path.write_bytes(pcap(in_time_order([talk])))
    done = redact(path, out, KEY)
    assert b"secret" not in out.read_bytes()
    assert done.bytes_zero == done.bytes_payload > 0


def test_options_and_blocks_of_pcapng_are_gone(tmp_path: Path) -> None:
    name = next(name for name, path in FILES.items() if path.suffix == ".pcapng")
    path, out = tmp_path / "named.pcapng", tmp_path / "redacted.pcapng"
    plain = FILES[name].read_bytes()
    size = struct.unpack_from("<I", plain, 4)[0]
    comment = b"taken by somebody"
    options = struct.pack("<HH", 1, len(comment)) + comment + bytes(-len(comment) % 4 + 4)
    head = section()[8:-4] + options
    block = struct.pack("<II", 0x0A0D0D0A, len(head) + 12) + head + struct.pack("<I", len(head) + 12)
    path.write_bytes(block + plain[size:])
    done = redact(path, out, KEY)
    assert b"somebody" in path.read_bytes()
    assert b"somebody" not in out.read_bytes()
    with open_capture(out) as capture:
        assert len(capture.records().time_ns) == done.packets > 0


def test_one_key_gives_the_same_everywhere_and_another_one_does_not() -> None:
    other = Pseudonyms(KEY[::-1])
    assert Pseudonyms(KEY).text(b"DefaultCluster") == NAMES.text(b"DefaultCluster")
    assert other.text(b"DefaultCluster") != NAMES.text(b"DefaultCluster")
    with pytest.raises(ValueError, match="at least 16 bytes"):
        Pseudonyms(b"short")


def test_two_words_never_become_one_and_keep_their_kinds_of_characters() -> None:
    words = [bytes(pair) for pair in itertools.product(string.ascii_lowercase.encode(), repeat=2)]
    assert sorted(map(NAMES.word, words)) == sorted(words)
    made = NAMES.word(b"Broker7" * 20)
    assert (len(made), made.isalnum(), made[:1].isupper(), made[6:7].isdigit()) == (140, True, True, True)


def test_addresses_keep_prefixes_ports_and_lengths_and_become_others() -> None:
    texts = [b"10.1.2.3:10911", b"10.1.2.4", b"10.1.77.4", b"192.168.100.200"]
    made = [NAMES.text(text) for text in texts]
    assert [len(text) for text in made] == [len(text) for text in texts]
    assert made[0].endswith(b":10911")
    assert made[0].split(b".")[:3] == made[1].split(b".")[:3]
    assert made[1].split(b".")[:2] == made[2].split(b".")[:2]
    assert set(made).isdisjoint(texts)
    six = ipaddress.IPv6Address("2001:db8::1:fe")
    assert (
        NAMES.text(b"[2001:db8::1:fe]:80")
        == f"[{ipaddress.IPv6Address(NAMES.address(six.packed))}]:80".encode()
    )


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{0}:10911", "{1}:10911"),
        ("{0}:9878", "{1}:9878"),
        ("[{0}]:80", "[{1}]:80"),
        ("{0}", "{1}"),
        ("[{0}]", "[{1}]"),
    ],
)
@pytest.mark.parametrize("host", ["fd00::1:fe", "fd00:0:0:0:0:0:1:fe", "::1:fe"])
def test_an_ipv6_address_becomes_one_in_every_form(host: str, text: str, made: str) -> None:
    other = ipaddress.IPv6Address(NAMES.address(ipaddress.IPv6Address(host).packed))
    said = NAMES.text(text.format(host).encode()).decode()
    shown = str(other) if "::" in host else said[text.index("{") : text.index("{") + len(host)]
    assert ipaddress.IPv6Address(shown) == other
    assert said == made.format(host, shown)


@pytest.mark.parametrize("text", ["[fd00:0:0:0:0:0:1:fe%eth0]:10911", "fd00:0:0:0:0:0:1:fe%eth0:10911"])
def test_a_zone_is_a_word_behind_its_address(text: str) -> None:
    made = NAMES.text(text.encode()).decode()
    other = ipaddress.IPv6Address(NAMES.address(ipaddress.IPv6Address("fd00::1:fe").packed))
    host, _, zone = made.strip("[").partition("%")
    assert ipaddress.IPv6Address(host) == other
    assert zone != "eth0"
    assert made.endswith(":10911")
    assert len(made) == len(text)


@pytest.mark.parametrize("text", ["12:34:56", "a:b::c:d::e:1234", "1:2:3:4:5:6:7:8:9:10"])
def test_what_only_looks_like_an_address_is_replaced_too(text: str) -> None:
    made = NAMES.text(text.encode()).decode()
    assert made != text
    assert [len(part) for part in made.split(":")] == [len(part) for part in text.split(":")]


def test_a_key_under_which_an_address_becomes_another_one_is_refused(tmp_path: Path) -> None:
    other = str(ipaddress.IPv4Address(NAMES.address(ipaddress.IPv4Address("10.0.0.1").packed)))
    talk = Conversation(("10.0.0.1", 4000), (other, 80))
    talk.open()
    path = tmp_path / "two.pcap"
    path.write_bytes(pcap(in_time_order([talk])))
    with pytest.raises(SameAddressError, match="another key"):
        redact(path, tmp_path / "out.pcap", KEY)


def texts() -> JsonTexts:
    return JsonTexts(NAMES, shapes("rocketmq"), Records(NAMES).held)


def test_declared_numbers_and_words_stay_and_what_nobody_declared_does_not() -> None:
    shape = shapes("rocketmq")["TopicConfig"]
    said = b'{"topicName":"orders","perm":6,"topicFilterType":"SINGLE_TAG","mine":42}'
    made = json.loads(texts().redact(said, shape))
    assert (made["perm"], made["topicFilterType"]) == (6, "SINGLE_TAG")
    assert made["topicName"] == NAMES.text(b"orders").decode()
    assert "mine" not in made
    assert 42 not in made.values()


@pytest.mark.parametrize("said", [b"{", b'{"a"', b"[" * 100, b'{"a":1}x', b'{"a" 1}', b'"', b"[1,]"])
def test_what_is_no_json_is_refused(said: bytes) -> None:
    with pytest.raises(NotDecodedError):
        texts().redact(said, None)


def test_the_checksum_of_a_record_is_that_of_its_new_body() -> None:
    record = LogRecord(
        magic=-626843481,
        body=b"what was ordered",
        topic="orders",
        properties=b"KEYS\x01k7\x02mine\x01x\x02",
        born_ip=bytes([10, 0, 0, 1]),
        store_ip=bytes([10, 0, 0, 2]),
        physical_offset=77,
    ).encode()
    made = LogRecord.decode(Records(NAMES).run(record))
    assert made.body_crc is not None
    assert (len(made.body), made.physical_offset) == (16, 77)
    assert made.properties.startswith(b"KEYS\x01" + NAMES.text(b"k7") + b"\x02")
    assert b"mine" not in made.properties
    assert made.topic == NAMES.text(b"orders").decode()
    with pytest.raises(RemoteProtocolError):
        size_told(b"no record starts here")


class _Counted(bytearray):
    """Bytes of which it is counted how many are copied."""

    copied = 0

    def __bytes__(self) -> bytes:
        type(self).copied += len(self)
        return bytes(memoryview(self))


def test_a_record_that_never_ends_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes that promise a gibibyte are no reason to copy all that waits with every run."""
    monkeypatch.setattr(_Counted, "copied", 0)
    log = _Log(Records(NAMES), Image(b"", no_pieces()))
    log._waiting = _Counted()
    run = bytes(4096)
    head = (1 << 30).to_bytes(4, "big") + LogBlank.magic.to_bytes(4, "big", signed=True)
    for at in range(64):
        log.add(at * 5000, at * len(run), head + run[8:] if at == 0 else run)
    assert len(log._waiting) == 64 * len(run)
    assert _Counted.copied <= len(run)


LOCAL_4, LOCAL_6 = ipaddress.ip_address("10.20.30.40").packed, ipaddress.ip_address("fd00::77:1").packed
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PREFACES = (
    b"PROXY TCP4 10.20.30.40 10.20.30.41 40000 10911\r\n",
    b"PROXY TCP6 fd00::77:1 fd00::77:2 40000 10911\r\n",
    b"PROXY UNKNOWN said by host-seven\r\n",
    SIGNATURE + b"\x21\x11\x00\x16" + LOCAL_4 * 2 + b"\x9c\x40\x2a\x9f" + b"\x02\x00\x07private",
    SIGNATURE + b"\x21\x21\x00\x24" + LOCAL_6 * 2 + b"\x9c\x40\x2a\x9f",
    SIGNATURE + b"\x21\x11\x00\x03" + LOCAL_4[:3],
    SIGNATURE + b"\x20\x00\x00\x00",
)


@pytest.mark.parametrize("preface", PREFACES)
def test_what_a_proxy_said_first_names_nobody_and_the_frames_behind_it_stay(
    preface: bytes, tmp_path: Path
) -> None:
    talk = Conversation(("10.0.0.1", 4000), ("10.0.0.2", 10_911))
    talk.open()
    talk.send(preface + command(1) + command(2), from_client=True)
    path, out = tmp_path / "proxied.pcap", tmp_path / "redacted.pcap"
    path.write_bytes(pcap(in_time_order([talk])))
    redact(path, out, KEY)
    assert told(replayed(out)) == told(replayed(path))
    assert replayed(path).capture.frames_remoting == 2
    raw = out.read_bytes()
    said = (LOCAL_4[:3], LOCAL_6[-6:], b"10.20.30", b"fd00::77", b"seven", b"private")
    assert {each for each in said if each in raw} == set()
