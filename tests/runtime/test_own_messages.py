"""Our own messages: two runtimes of protobuf say the same, and neither takes what is not a message."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.adapter.v1 import adapter_pb2
from replispec.adapter.v1 import messages as adapter
from replispec.event.v1 import event_pb2
from replispec.runtime.documents import betterproto_seam, official_seam
from replispec.runtime.documents.shapes import MESSAGES_MAXIMUM, UNKNOWN_MAXIMUM, Shape, Slot
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from tests.runtime.own_messages import (
    PAIRS,
    Pair,
    Tree,
    from_betterproto,
    from_official,
    to_betterproto,
    to_official,
    trees,
)

EVERY_MESSAGE = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
# The outermost messages hold all others; what is slow is tried on these.
OUTERMOST = ["adapter.AdapterMessage", "adapter.RunnerMessage", "event.ControllerEvent", "trace.TraceRecord"]
EVERY_DOCUMENT = pytest.mark.parametrize("pair", [PAIRS[name] for name in OUTERMOST], ids=OUTERMOST)
FEW = settings(max_examples=20)


def both(pair: Pair, data: bytes, *, unknown_allowed: bool = True) -> Tree | None:
    """What both runtimes read, None when both refuse; the test fails when they do not agree."""
    found: list[Tree | None] = []
    for read in (_by_betterproto, _by_official):
        try:
            found.append(read(pair, data, unknown_allowed))
        except RemoteProtocolError:
            found.append(None)
    assert found[0] == found[1]
    return found[0]


def _by_betterproto(pair: Pair, data: bytes, unknown_allowed: bool) -> Tree:
    return from_betterproto(betterproto_seam.decode(pair[0], data, unknown_allowed=unknown_allowed))


def _by_official(pair: Pair, data: bytes, unknown_allowed: bool) -> Tree:
    return from_official(official_seam.decode(pair[1], data, unknown_allowed=unknown_allowed))


def encoded(pair: Pair, tree: Tree) -> bytes:
    return official_seam.encode(to_official(pair[1], tree))


@EVERY_MESSAGE
def test_both_runtimes_know_a_message_by_one_shape(pair: Pair) -> None:
    assert betterproto_seam.shape_of(pair[0]) == official_seam.shape_of(pair[1])


@EVERY_MESSAGE
@FEW
@given(data=st.data())
def test_what_betterproto_writes_the_official_runtime_reads(pair: Pair, data: st.DataObject) -> None:
    tree = data.draw(trees(pair[1].DESCRIPTOR))
    written = betterproto_seam.encode(to_betterproto(pair[0], tree))
    assert _by_official(pair, written, False) == tree


@EVERY_MESSAGE
@FEW
@given(data=st.data())
def test_what_the_official_runtime_writes_betterproto_reads(pair: Pair, data: st.DataObject) -> None:
    tree = data.draw(trees(pair[1].DESCRIPTOR))
    assert _by_betterproto(pair, encoded(pair, tree), False) == tree


@FEW
@given(tree=trees(event_pb2.ControllerEvent.DESCRIPTOR))
def test_a_record_of_the_log_has_the_same_bytes_from_both(tree: Tree) -> None:
    """It holds no map, so nothing is left to the writer's choice."""
    pair = PAIRS["event.ControllerEvent"]
    assert betterproto_seam.encode(to_betterproto(pair[0], tree)) == encoded(pair, tree)


@EVERY_DOCUMENT
@FEW
@given(data=st.data())
def test_bytes_cut_anywhere_are_refused_or_read_alike(pair: Pair, data: st.DataObject) -> None:
    whole = encoded(pair, data.draw(trees(pair[1].DESCRIPTOR)))
    for end in range(len(whole)):
        both(pair, whole[:end], unknown_allowed=False)


@EVERY_DOCUMENT
@given(data=st.data())
def test_damaged_bytes_are_refused_or_read_alike(pair: Pair, data: st.DataObject) -> None:
    damaged = bytearray(encoded(pair, data.draw(trees(pair[1].DESCRIPTOR))))
    for place in data.draw(st.lists(st.integers(0, max(len(damaged) - 1, 0)), max_size=4)):
        if damaged:
            damaged[place] = data.draw(st.integers(0, 255))
    both(pair, bytes(damaged))


@EVERY_DOCUMENT
@given(garbage=st.binary(max_size=64), unknown_allowed=st.booleans())
def test_garbage_is_refused_or_read_alike(pair: Pair, garbage: bytes, unknown_allowed: bool) -> None:
    both(pair, garbage, unknown_allowed=unknown_allowed)


# Field 1 of Describe is a uint32, field 2 of Reset does not exist; each row breaks one rule.
@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("Describe", "08", "the bytes end inside a number (at byte 1)"),
        ("Describe", "0880", "the bytes end inside a number (at byte 1)"),
        ("Describe", "08ffffffffffffffffffff01", "a number of more than 10 bytes (at byte 1)"),
        ("Describe", "08ffffffffffffffffff02", "a number of more than 64 bits (at byte 1)"),
        ("Describe", "088080808010", "Describe.protocol: 4294967296 is no uint32 (at byte 1)"),
        ("Describe", "0a0101", "Describe.protocol has wire type 2 and is uint32 (at byte 0)"),
        ("Describe", "0d01000000", "Describe.protocol has wire type 5 and is uint32 (at byte 0)"),
        ("Describe", "08010802", "Describe.protocol comes twice (at byte 2)"),
        ("Describe", "88808080800001", "a number of more than 5 bytes (at byte 0)"),
        ("Describe", "0001", "Describe has a field of number 0 (at byte 0)"),
        ("Describe", "13", "Describe has a field of wire type 3 (at byte 0)"),
        ("Describe", "1501", "Describe ends inside field 2 (at byte 1)"),
        ("Describe", "1205", "5 bytes announced, 0 left (at byte 1)"),
        ("Reset", "0a81808080800061", "a number of more than 5 bytes (at byte 1)"),
        ("Reset", "0a0561", "5 bytes announced, 1 left (at byte 1)"),
        ("Reset", "0a03616263ff", "the bytes end inside a number (at byte 5)"),
        ("Reset", "0a0361ff63", "Reset.instance is not UTF-8 (at byte 3)"),
        ("Reset", "0801", "Reset.instance has wire type 0 and is string (at byte 0)"),
        ("RunnerMessage", "12002200", "RunnerMessage.request comes twice (at byte 2)"),
        ("Description", "42050a01631801", "Entry has the unknown field 3 (at byte 5)"),
        ("Description", "2a01012a0102", "Description.roles comes twice (at byte 3)"),
        ("Description", "28012a0102", "Description.roles comes twice (at byte 2)"),
        ("Description", "2affffffff0f", "4294967295 bytes announced, 0 left (at byte 1)"),
        ("Exited", "108080808008", "Exited.status: 2147483648 is no int32 (at byte 1)"),
        ("Result", "3002", "Result.continued: 2 is no bool (at byte 1)"),
        ("Refusal", "08ffffffffffffffffff01", "Refusal.reason: 18446744073709551615 is no enum (at byte 1)"),
    ],
)
def test_what_breaks_a_message_is_named_with_its_place(kind: str, data: str, reason: str) -> None:
    pair = PAIRS[f"adapter.{kind}"]
    for read in (_by_betterproto, _by_official):
        with pytest.raises(RemoteProtocolError) as caught:
            read(pair, bytes.fromhex(data), True)
        assert str(caught.value) == reason


def test_a_list_of_numbers_may_come_unpacked() -> None:
    """Protobuf wants readers to take both forms."""
    assert both(PAIRS["adapter.Description"], bytes.fromhex("28012803")) == {"roles": [1, 3]}


def test_unknown_fields_are_kept_and_written_again_where_they_are_allowed() -> None:
    pair = PAIRS["adapter.Describe"]
    newer = bytes.fromhex("0801" + "1205" + b"later".hex() + "1801" + "2101020304050607082d01020304")
    better = betterproto_seam.decode(pair[0], newer, unknown_allowed=True)
    assert betterproto_seam.encode(better) == newer
    assert official_seam.encode(official_seam.decode(pair[1], newer, unknown_allowed=True)) == newer
    assert both(pair, newer) == {"protocol": 1}


def test_unknown_fields_are_refused_where_they_are_not_allowed() -> None:
    with pytest.raises(RemoteProtocolError, match="AlterSyncStateSet has the unknown field 9"):
        _by_official(PAIRS["event.ControllerEvent"], bytes.fromhex("5a024801"), False)
    assert both(PAIRS["event.ControllerEvent"], bytes.fromhex("5a024801"), unknown_allowed=False) is None


def test_the_messages_in_one_document_are_bounded() -> None:
    """An empty message costs two bytes on the wire and hundreds in memory."""
    pair = PAIRS["adapter.Result"]
    most = bytes.fromhex("2200") * (MESSAGES_MAXIMUM - 1)
    assert len(_by_official(pair, most, False)["messages"]) == MESSAGES_MAXIMUM - 1
    with pytest.raises(RemoteProtocolError, match="more than 65536 messages"):
        _by_betterproto(pair, most + bytes.fromhex("2200"), False)


def test_the_unknown_fields_in_one_document_are_bounded() -> None:
    pair = PAIRS["adapter.Done"]
    assert both(pair, b"\x08\x00" * UNKNOWN_MAXIMUM) == {}
    assert both(pair, b"\x08\x00" * (UNKNOWN_MAXIMUM + 1)) is None


@pytest.mark.parametrize("seam", [betterproto_seam, official_seam])
def test_the_bytes_of_one_document_are_bounded(seam: Any) -> None:
    pair = PAIRS["adapter.Reset"]
    kind: Any = pair[0] if seam is betterproto_seam else pair[1]
    with pytest.raises(RemoteProtocolError, match="12 bytes in one document, 11 allowed"):
        seam.decode(kind, encoded(pair, {"instance": "abcdefghij"}), unknown_allowed=True, limit_bytes=11)
    with pytest.raises(LocalProtocolError, match="12 bytes"):
        seam.encode(kind(instance="abcdefghij"), limit_bytes=11)


@pytest.mark.parametrize(
    "message",
    [
        adapter.Describe(protocol=2**32),
        adapter.Describe(protocol=-1),
        adapter.RunnerMessage(request_id=-1),
        adapter.Exited(status=2**31),
        adapter.Reset(instance="\ud800"),
        adapter.Reset(instance=b"bytes"),  # type: ignore[arg-type]
        adapter.Description(details={"": ""}),
        adapter.Description(details={"commit": 1}),  # type: ignore[dict-item]
    ],
    ids=repr,
)
def test_betterproto_does_not_write_what_would_not_be_read(message: Any) -> None:
    with pytest.raises(LocalProtocolError):
        betterproto_seam.encode(message)


def test_an_empty_message_that_is_set_stays_set() -> None:
    pair = PAIRS["adapter.AdapterMessage"]
    written = betterproto_seam.encode(adapter.AdapterMessage(request_id=1, done=adapter.Done()))
    assert written == official_seam.encode(adapter_pb2.AdapterMessage(request_id=1, done=adapter_pb2.Done()))
    assert both(pair, written) == {"request_id": 1, "done": {}}


def test_a_shape_has_only_kinds_that_can_be_walked() -> None:
    with pytest.raises(LocalProtocolError, match=r"Measure.value: double is no kind of our messages"):
        Shape("Measure", {1: Slot("value", "double")})
    with pytest.raises(LocalProtocolError, match=r"Measure.inner: message is no kind"):
        Shape("Measure", {1: Slot("inner", "message")})
