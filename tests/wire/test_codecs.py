"""Every generated codec: what is written is read back, and garbage is parsed or blamed on the peer."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.wire.rocketmq import ha, remoting, store
from replispec.wire.rocketmq.codes import HaConnectionState, LogMagic
from tests.wire.strategies import classes, messages

BINARY = classes("decode_at", "encode")
DOCUMENTS = [each for each in classes("decode", "encode") if each not in BINARY]
HEADERS = classes("from_ext_fields", "to_ext_fields")


def _names(kinds: list[type[Any]]) -> list[str]:
    return [kind.__name__ for kind in kinds]


@pytest.mark.parametrize("kind", BINARY, ids=_names(BINARY))
@given(data=st.data())
def test_a_binary_message_is_read_back_and_ends_where_it_ends(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    encoded = message.encode()
    prefix = data.draw(st.binary(max_size=8))
    found, position = kind.decode_at(prefix + encoded, len(prefix), len(prefix) + len(encoded))
    assert found.encode() == encoded
    assert position == len(prefix) + len(encoded)


@pytest.mark.parametrize("kind", [*BINARY, *DOCUMENTS], ids=_names([*BINARY, *DOCUMENTS]))
@given(garbage=st.binary(max_size=200))
def test_garbage_is_parsed_or_blamed_on_the_peer(kind: type[Any], garbage: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        kind.decode(garbage)


@pytest.mark.parametrize("kind", BINARY, ids=_names(BINARY))
@given(data=st.data())
def test_a_cut_binary_message_is_blamed_on_the_peer(kind: type[Any], data: st.DataObject) -> None:
    encoded = data.draw(messages(kind)).encode()
    cut = data.draw(st.integers(0, max(len(encoded) - 1, 0)))
    # A message that ends with "the rest" and has no length of its own may be shorter: then it is another one.
    with contextlib.suppress(RemoteProtocolError):
        assert len(kind.decode(encoded[:cut]).encode()) == cut


@pytest.mark.parametrize("kind", DOCUMENTS, ids=_names(DOCUMENTS))
@given(data=st.data())
def test_a_document_is_read_back(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    encoded = message.encode()
    assert kind.decode(encoded).encode() == encoded


@pytest.mark.parametrize("kind", HEADERS, ids=_names(HEADERS))
@given(data=st.data())
def test_header_fields_are_read_back_and_unknown_keys_survive(kind: type[Any], data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    fields = {**message.to_ext_fields(), "x-unknown": "1"}
    found = kind.from_ext_fields(fields)
    assert found.unknown == {"x-unknown": "1"}
    assert found.to_ext_fields().items() == fields.items()


@given(header=messages(remoting.RemotingHeader))
def test_both_encodings_of_a_header_say_the_same(header: remoting.RemotingHeader) -> None:
    header.ext_fields = header.ext_fields or None
    from_json = remoting.RemotingHeader.decode_json(header.encode_json())
    from_binary = remoting.RemotingHeader.decode_binary(header.encode_binary())
    assert from_json == from_binary == header


@given(garbage=st.binary(max_size=200))
def test_a_garbage_header_is_parsed_or_blamed_on_the_peer(garbage: bytes) -> None:
    for decode in (remoting.RemotingHeader.decode_json, remoting.RemotingHeader.decode_binary):
        with contextlib.suppress(RemoteProtocolError):
            decode(garbage)


WRONG_TYPES = (
    b'{"code":1.5} {"code":"x"} {"code":99999999999} {"code":true} {"flag":[]} {"extFields":[]}'
    b' {"extFields":{"a":{}}} [] { \xff {"language":-1}'
)


@pytest.mark.parametrize("header", WRONG_TYPES.split())
def test_a_header_of_wrong_types_is_blamed_on_the_peer(header: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        remoting.RemotingHeader.decode_json(header)


def test_numbers_and_flags_among_header_fields_become_text_as_java_makes_of_them() -> None:
    header = remoting.RemotingHeader.decode_json(b'{"code":1,"extFields":{"a":5,"b":true,"c":null,"d":"x"}}')
    assert header.ext_fields == {"a": "5", "b": "true", "c": None, "d": "x"}


def test_a_value_that_does_not_fit_its_field_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="HaReport"):
        ha.HaReport(max_offset=1 << 63).encode()


def test_constants_of_the_wire_are_the_states_of_the_machine() -> None:
    assert ha.HaReport.state == HaConnectionState.TRANSFER
    assert ha.HaHandshakeId.state == HaConnectionState.HANDSHAKE


def test_a_record_with_long_topic_and_v6_hosts_takes_the_wider_forms() -> None:
    record = store.LogRecord(
        magic=LogMagic.MESSAGE_V2,
        sys_flag=0x30,
        born_ip=bytes(16),
        store_ip=bytes(16),
        topic="t" * 300,
        body=b"x",
    )
    encoded = record.encode()
    found = store.LogRecord.decode(encoded)
    assert (found.topic, len(found.born_ip), len(found.store_ip)) == ("t" * 300, 16, 16)
    assert found.encode() == encoded
    assert found.body_crc_holds
    found.body = b"y"
    assert not found.body_crc_holds


def test_an_epoch_file_with_a_wrong_checksum_is_refused_and_zero_is_unchecked() -> None:
    whole = store.EpochFile(entries=[store.EpochFileEntry(epoch=1, start_offset=0)]).encode()
    assert whole == b"1\n1725254278\n1-0\n"
    with pytest.raises(RemoteProtocolError, match="crc"):
        store.EpochFile.decode(whole.replace(b"1-0", b"1-1"))
    with pytest.raises(RemoteProtocolError, match="count"):
        store.EpochFile.decode(whole.replace(b"1\n17", b"2\n17"))
    assert store.EpochFile.decode(b"1\n0\n1-1\n").entries[0].start_offset == 1


@pytest.mark.parametrize("number", ["1_000", " 5", "٣", "", "+", "0x1", "1e3", str(1 << 63)])
def test_numbers_that_java_refuses_are_refused(number: str) -> None:
    with pytest.raises(RemoteProtocolError):
        store.BrokerIdentity.decode(f"c#b#{number}".encode())


def test_a_separator_inside_a_name_is_our_own_fault() -> None:
    with pytest.raises(LocalProtocolError, match="#"):
        store.BrokerIdentity(cluster_name="a#b", broker_name="c", broker_id=1).encode()
