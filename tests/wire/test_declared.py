"""Codecs that are declared: orders of keys, and alternatives of one key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.headers import Header, header
from replispec.runtime.primitives.keyed import int64
from replispec.runtime.primitives.orders import hash_ordered
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.controller import ElectMasterRequest, SyncStateSet
from tests.wire.strategies import messages

BINARY_DECLARED = (SendMessageV2Request, SendMessageResponse, PullMessageRequest, PullMessageResponse)


@pytest.mark.parametrize("kind", BINARY_DECLARED, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_binary_header_is_written_in_the_order_of_its_fields(
    kind: type[Header], data: st.DataObject
) -> None:
    message = data.draw(messages(kind))
    message.unknown = {"x-unknown": "1"} if data.draw(st.booleans()) else {}
    fields = message.to_ext_fields(binary=True)
    declared = [key for key in kind._READING.keys if key in fields]
    assert list(fields) == [*declared, *message.unknown]
    assert fields == message.to_ext_fields()
    assert kind.from_ext_fields(fields) == message


@given(message=messages(ElectMasterRequest), unknown=st.sampled_from([{}, {"x": "1"}]))
def test_fields_are_written_in_the_order_of_a_hash_map(
    message: ElectMasterRequest, unknown: dict[str, str | None]
) -> None:
    message.unknown = unknown
    fields = message.to_ext_fields()
    declared = sorted(fields, key=lambda key: (key in unknown, _place(key)))
    assert list(fields) == list(hash_ordered({key: fields[key] for key in declared}, 16))


def _place(key: str) -> int:
    keys = ["clusterName", "brokerName", "brokerAddress", "brokerId", "designateElect", "invokeTime"]
    return keys.index(key) if key in keys else len(keys)


def test_a_map_that_grows_is_written_in_the_order_of_the_grown_map() -> None:
    @header(1, hash_capacity=2)
    class Small(Header):
        """Three fields in a map that holds one before it grows."""

        a: int | None = int64("alpha")
        b: int | None = int64("beta")
        c: int | None = int64("gamma")

    for message in (Small(1), Small(1, 2), Small(1, 2, 3), Small(None, 2, 3)):
        fields = {"alpha": message.a, "beta": message.b, "gamma": message.c}
        expected = hash_ordered({key: str(value) for key, value in fields.items() if value}, 2)
        assert list(message.to_ext_fields().items()) == list(expected.items())


def test_alternatives_of_one_key_are_told_apart_and_never_written_together() -> None:
    assert SyncStateSet.decode(b'{"syncStateSet":["a:1"]}') == SyncStateSet(addresses=["a:1"])
    assert SyncStateSet.decode(b'{"syncStateSet":[1]}') == SyncStateSet(broker_ids=[1])
    with pytest.raises(LocalProtocolError, match=r"SyncStateSet\.syncStateSet: two alternatives"):
        SyncStateSet(addresses=["a:1"], broker_ids=[1]).encode()
