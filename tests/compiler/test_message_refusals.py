"""What the compiler refuses in messages, each with file, line, fault and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.model.message import SpecificationError
from tests.compiler.specification import changed

PROTO = "proto/replispec/rocketmq/v1"
HA, CONTROLLER, REMOTING, STORE = (
    f"{PROTO}/{name}.proto" for name in ("ha", "controller", "remoting", "store")
)

REFUSALS = [
    pytest.param(
        f"{PROTO}/broker.proto",
        'checksum: {over: "body"  mask: 0x7fffffff  zero_unchecked: true}',
        'checksum: {over: "zone_name"  mask: 0x7fffffff  zero_unchecked: true}',
        r"broker\.proto:\d+: RegisterBrokerRequest\.body_crc32: checksum says nothing in a HEADER_FIELDS",
        id="the checksum of something beside the body in a header",
    ),
    pytest.param(
        HA,
        "int64 max_offset = 2 [(wire) = {size: 8  unit: LOG_BYTES}];  // end of the replica's commit log",
        "int64 max_offset = 2 [(wire) = {size: 8  unti: LOG_BYTES}];",
        r'ha\.proto:\d+.*"unti".*docs/specification\.md',
        id="unknown option",
    ),
    pytest.param(
        HA,
        "int32 epoch        = 1 [(wire) = {size: 4}];",
        "int32 epoch        = 1 [(wire) = {size: 8}];",
        r"ha\.proto:\d+: HaEpochEntry\.epoch: 8 bytes do not fit int32\. take a wider type",
        id="size wider than its type",
    ),
    pytest.param(
        HA,
        "option (on_wire) = { layout: BINARY  fixed: 12 };",
        "option (on_wire) = { layout: BINARY  fixed: 13 };",
        r"ha\.proto:\d+: HaEpochEntry: fixed is 13, but .* take 12 bytes\. correct the sizes",
        id="a total that does not add up",
    ),
    pytest.param(
        CONTROLLER,
        "code: 1012  kind: REQUEST",
        "code: 1013  kind: REQUEST",
        r"controller\.proto:\d+: ApplyBrokerIdRequest takes code 1013, which GetNextBrokerIdRequest",
        id="a code twice in one version range",
    ),
    pytest.param(
        CONTROLLER,
        "code: 1012  kind: REQUEST",
        "code: 1999  kind: REQUEST",
        r"controller\.proto:\d+: GetNextBrokerIdRequest: code 1999 is not in enum RequestCode\. add it",
        id="a code that nobody named",
    ),
    pytest.param(
        CONTROLLER,
        'repeated int64  broker_ids = 2 [(wire) = {key: "syncStateSet"  versions: "apache@5.1.1.."}];',
        'repeated int64  broker_ids = 2 [(wire) = {key: "syncStateSet"  versions: "apache@5.1.0.."}];',
        r"controller\.proto:\d+: SyncStateSet: addresses and broker_ids both are 'syncStateSet'.*not overlap",
        id="alternatives that overlap",
    ),
    pytest.param(
        CONTROLLER,
        'repeated int64  broker_ids = 2 [(wire) = {key: "syncStateSet"  versions: "apache@5.1.1.."}];',
        'repeated int64  broker_ids = 2 [(wire) = {key: "syncStateSet"  versions: "apache@5.3.0.."}];',
        r"controller\.proto:\d+: SyncStateSet: no field is 'syncStateSet' in the releases between",
        id="alternatives that leave a hole",
    ),
    pytest.param(
        CONTROLLER,
        "int64  next_broker_id = 3;",
        'int64  next_broker_id = 3 [(wire) = {versions: "5.1.1.."}];',
        r"controller\.proto:\d+: '5\.1\.1\.\.' is not a version range\. write implementation@first\.\.last",
        id="a version range without implementation",
    ),
    pytest.param(
        HA,
        'bytes body               = 7 [(wire) = {length: "body_size"}];',
        'bytes body               = 7 [(wire) = {length: "bodysize"}];',
        r"ha\.proto:\d+: HaTransferHeader\.body refers to 'bodysize', which no earlier field has",
        id="a length that does not exist",
    ),
    pytest.param(
        HA,
        "int32 body_size          = 2 [(wire) = {size: 4  minimum: 0  maximum: 4194268  unit: BYTES}];",
        "int32 body_size          = 2 [(wire) = {size: 4  minimum: 0  unit: BYTES}];",
        r"ha\.proto:\d+: HaTransferHeader\.body_size has no maximum\. bound it",
        id="a length without bound",
    ),
    pytest.param(
        STORE,
        'bytes properties      = 19 [(wire) = {prefix: 2  holds: "PROPERTIES"}];',
        "bytes properties      = 19 [(wire) = {prefix: 2  size: 4}];",
        r"store\.proto:\d+: LogRecord\.properties: nothing, or more than one thing, tells where it ends",
        id="two ends of one field",
    ),
    pytest.param(
        REMOTING,
        "  LANGUAGE_CODE_CPP = 1;",
        "  CPP = 1;",
        r"remoting\.proto:\d+: CPP does not start with LANGUAGE_CODE_\. enum values are scoped",
        id="an enum value without prefix",
    ),
    pytest.param(
        REMOTING,
        'option (on_wire) = { layout: BINARY  also: JSON  order: "ALPHABETICAL"  '
        'hot: "in every request and answer"\n'
        '                       clause: "WIRE-HEADER-1" };',
        "",
        r"remoting\.proto:\d+: RemotingHeader has no layout\. say how it lies on the wire",
        id="a message without layout",
    ),
    pytest.param(
        CONTROLLER,
        'message SyncStateSet {\n  option (on_wire) = { layout: JSON  order: "ALPHABETICAL"',
        'message SyncStateSet {\n  option (on_wire) = { layout: JSON  order: "HASH_16"',
        r"controller\.proto:\d+: SyncStateSet: keys of a JSON body have no order .HASH_16.\. write one of",
        id="a body in the order of a hash map",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "says"), REFUSALS)
def test_the_compiler_refuses_with_place_and_advice(
    tmp_path: Path, file: str, old: str, new: str, says: str
) -> None:
    with pytest.raises(SpecificationError) as refusal:
        generate(changed(tmp_path, file, old, new))
    assert re.search(says, str(refusal.value)), str(refusal.value)
