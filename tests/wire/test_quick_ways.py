"""Where a codec has a quick way for what is usual, it says what the slow way says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError

from replispec.runtime.primitives.binary import need, read_prefix, read_text, read_text_map, write_text_map
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.headers import Header, header
from replispec.runtime.primitives.keyed import int32, int64, uint32
from replispec.runtime.primitives.streams import Stream, measure_of
from replispec.runtime.primitives.texts import INT32, INT64, UINT32, parse_integer
from replispec.wire.rocketmq import remoting, streams
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest
from tests.wire.strategies import messages

PLAIN = "_PLAIN_REMOTING_HEADER"
# What peers may write, and what they must not, between the bytes of a sound header.
MATERIAL = st.sampled_from(
    [
        *(b'"', b"\\", b",", b":", b"{", b"}", b"[]", b"null", b"true", b"1", b"0", b"-", b".0", b"e5", b" "),
        *(
            b"\n",
            b"\x00",
            b"\xff",
            b"\xed\xa0\x80",
            b"\xc3\xa9",
            b"\\ud800",
            b"\\u0000",
            b"\\n",
            b"99999999999",
        ),
        *(b'"x":1,', b'"code":"7",', b'"code":null,', b'"code":2,', b'{1:"a"}', b'"\\u0063ode":3,'),
    ]
)


def decoded(data: bytes) -> object:
    """The header with its fields in their order, or the fault."""
    try:
        header = remoting.RemotingHeader.decode_json(data)
    except RemoteProtocolError as fault:
        return str(fault)
    return header, list((header.ext_fields or {}).items())


CHANGES = st.lists(st.tuples(st.integers(0), MATERIAL), max_size=3)


def changed(header: remoting.RemotingHeader, changes: list[tuple[int, bytes]]) -> bytes:
    """The header as JSON with some bytes put into it, or in the place of others."""
    data = header.encode_json()
    for place, piece in changes:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + place % 2 :]
    return data


@given(st.lists(st.tuples(messages(remoting.RemotingHeader), CHANGES), max_size=5))
def test_headers_read_together_say_what_each_says(
    headers: list[tuple[remoting.RemotingHeader, list[tuple[int, bytes]]]],
) -> None:
    texts = [changed(*each) for each in headers]
    together = remoting.RemotingHeader.plain_json(texts)
    if together is not None:
        assert [_said(each) for each in together] == [_said(decoded_or_none(text)) for text in texts]


@pytest.mark.parametrize(
    "texts",
    [
        [b'{"code":1}{"code":2}', b'{"remark":', b'"x"}'],
        [b'{"code":1}\n{"code":2}', b'{"code":3,', b'"flag":1}'],
        [b'{"remark":"a', b'b"}'],
        [b'{"extFields":{}', b'{"code":1}}', b"{}{}"],
        [b"", b"{}"],
        [b"{}", b"{}}"],
    ],
)
def test_a_broken_header_is_noticed_among_others(texts: list[bytes]) -> None:
    """What is too much in one text does not make up for what is missing in another."""
    assert remoting.RemotingHeader.plain_json(texts) is None


def test_plain_headers_are_read_together() -> None:
    header = remoting.RemotingHeader(code=310, ext_fields={"a": "\u0001}\n{"}, remark="x")
    found = remoting.RemotingHeader.plain_json([header.encode_json()] * 3)
    assert found is not None
    assert [_said(each) for each in found] == [_said(header)] * 3


def decoded_or_none(data: bytes) -> remoting.RemotingHeader | None:
    """The header, None when it is none."""
    try:
        return remoting.RemotingHeader.decode_json(data)
    except RemoteProtocolError:
        return None


def _said(header: Any) -> object:
    """The fields of a header, its own fields in their order; None for none."""
    if header is None:
        return None
    names = [each.name for each in fields(remoting.RemotingHeader) if each.name != "unknown"]
    return [getattr(header, name) for name in names], list((header.ext_fields or {}).items())


@given(header=messages(remoting.RemotingHeader), changes=CHANGES)
def test_a_plain_header_says_what_the_lenient_reader_says(
    header: remoting.RemotingHeader, changes: list[tuple[int, bytes]]
) -> None:
    data = changed(header, changes)
    quick = decoded(data)
    with patch.object(getattr(remoting, PLAIN), "one", side_effect=DecodeError):
        assert decoded(data) == quick


@given(header=messages(remoting.RemotingHeader))
def test_a_usual_header_takes_the_quick_way(header: remoting.RemotingHeader) -> None:
    with patch.object(remoting.RemotingHeader, "_decode_any_json", side_effect=AssertionError):
        assert remoting.RemotingHeader.decode_json(header.encode_json()) == header


@pytest.mark.parametrize("bounds", [INT32, INT64, UINT32])
@given(text=st.from_regex(r"[+-]?[0-9٣_ ]{0,21}", fullmatch=True) | st.integers().map(str))
def test_a_number_of_a_header_is_the_number_or_its_fault(bounds: tuple[int, int], text: str) -> None:
    @header(1)
    class Numbers(Header):
        """One number of each kind."""

        a: int | None = int32("a")
        b: int | None = int64("b")
        c: int | None = uint32("c")

    key = {INT32: "a", INT64: "b", UINT32: "c"}[bounds]

    def outcome(parse: Callable[[], int | None]) -> object:
        try:
            return parse()
        except RemoteProtocolError as fault:
            return str(fault)

    read = outcome(lambda: getattr(Numbers.from_ext_fields({key: text}), key))
    assert read == outcome(lambda: parse_integer(text, bounds, f"Numbers.{key}"))


def entry_by_entry(data: bytes) -> dict[str, str | None]:
    """The map that `data` is, read the plain way. Raises RemoteProtocolError."""
    entries: dict[str, str | None] = {}
    at = 0
    while at < len(data):
        texts = []
        for prefix in (2, 4):
            size, at = read_prefix(data, at, prefix, len(data), "map")
            need(at, size, len(data), "map")
            texts.append(read_text(data, at, size, "map"))
            at += size
        entries[texts[0]] = texts[1] or None
    return entries


@given(
    entries=st.dictionaries(st.text(max_size=5), st.text(min_size=1, max_size=5) | st.none(), max_size=4),
    place=st.integers(0),
    value=st.integers(0, 255),
)
def test_a_broken_map_is_read_or_blamed_entry_by_entry(
    entries: dict[str, str | None], place: int, value: int
) -> None:
    data = bytearray(write_text_map(entries, 2, 4, "map"))
    if data:
        data[place % len(data)] = value

    def outcome(read: Callable[[bytes], dict[str, str | None]]) -> object:
        try:
            return list(read(bytes(data)).items())
        except RemoteProtocolError as fault:
            return str(fault), fault.offset

    assert outcome(lambda given: read_text_map(given, 0, len(given), 2, 4, "map")[0]) == outcome(
        entry_by_entry
    )


HEADS = st.lists(
    st.sampled_from([b"\x00", b"\x01", b"\x04", b"\x80", b"\xff", b"\x7f\xff\xff\xff", b"\xcb\xd4\x31\x94"])
    | st.binary(max_size=8),
    max_size=24,
).map(b"".join)


@pytest.mark.parametrize("stream", streams.STREAMS, ids=lambda stream: stream.name)
@given(data=HEADS, at=st.integers(0, 3))
def test_a_frame_is_measured_as_its_forms_say(stream: Stream, data: bytes, at: int) -> None:
    def outcome(measure: Callable[[bytes, int, int], int]) -> object:
        try:
            return measure(data, at, len(data))
        except RemoteProtocolError as fault:
            return str(fault), fault.offset

    at = min(at, len(data))
    assert outcome(measure_of(stream)) == outcome(stream.measure)


def read_header(key: str, text: str) -> object:
    """The value of this field of a header, or the fault."""
    try:
        header = BrokerHeartbeatRequest.from_ext_fields({key: text})
    except RemoteProtocolError as fault:
        return str(fault)
    return header.broker_id if key == "brokerId" else header.epoch


def read_number(key: str, text: str) -> object:
    """The number that the text is, or the fault of that field."""
    try:
        return parse_integer(text, INT64 if key == "brokerId" else INT32, f"BrokerHeartbeatRequest.{key}")
    except RemoteProtocolError as fault:
        return str(fault)


@pytest.mark.parametrize("key", ["brokerId", "epoch"])
def test_a_small_number_of_a_header_field_is_that_number(key: str) -> None:
    for text in map(str, range(-2, 300)):
        assert read_header(key, text) == int(text)


@pytest.mark.parametrize("key", ["brokerId", "epoch"])
@given(text=st.from_regex(r"[+-]?[0-9٣_ ]{0,21}", fullmatch=True) | st.integers(-(1 << 64), 1 << 64).map(str))
def test_the_number_of_a_header_field_is_the_number_or_its_fault(key: str, text: str) -> None:
    assert read_header(key, text) == read_number(key, text)


@given(
    fields=st.dictionaries(
        st.sampled_from(["brokerId", "epoch", "brokerName", "x", "y"]), st.sampled_from(["1", "7", None])
    )
)
def test_header_fields_that_are_not_declared_are_kept(fields: dict[str, str | None]) -> None:
    header = BrokerHeartbeatRequest.from_ext_fields(fields)
    assert header.unknown == {key: value for key, value in fields.items() if key in ("x", "y")}
