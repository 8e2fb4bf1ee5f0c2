"""What a family declares of itself: names that it does not declare are refused, and codes that two share."""

import shutil
from pathlib import Path

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.model.message import SpecificationError
from replispec.wire.rocketmq.codes import RequestCode
from tests.house.tree import ROOT

DECLARED = "families/rocketmq.yaml"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of the specification."""
    return Path(shutil.copytree(ROOT / "spec", tmp_path / "spec"))


def changed(spec: Path, file: str, old: str, new: str) -> str:
    """What the compiler says after one change of one file."""
    path = spec / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecificationError) as fault:
        generate(spec)
    return str(fault.value)


def test_a_party_that_is_not_declared_is_refused_with_those_that_are(spec: Path) -> None:
    said = changed(spec, DECLARED, "  BROKER_MASTER: the broker that takes writes\n", "")
    assert said.startswith("proto/replispec/rocketmq/v1/")
    assert "the family declares no party 'BROKER_MASTER'" in said
    assert f"declare it below parties in {DECLARED}; there are: ANY, BROKER, " in said


def test_a_family_that_declares_nothing_is_told_where(spec: Path) -> None:
    (spec / "families" / "kafka.yaml").unlink()
    with pytest.raises(SpecificationError, match=r"declare it below parties in families/kafka\.yaml"):
        generate(spec)


def test_an_order_that_is_not_declared_is_refused(spec: Path) -> None:
    said = changed(spec, DECLARED, "  HASH_256: {hash_map: 256}\n", "")
    assert "the family declares no order 'HASH_256'" in said
    assert "there are: DECLARED, ALPHABETICAL, HASH_16" in said


def test_a_capacity_is_a_power_of_two(spec: Path) -> None:
    said = changed(spec, DECLARED, "hash_map: 256", "hash_map: 255")
    assert said.startswith(f"{DECLARED}:")
    assert "'255' is no capacity" in said


def test_an_order_says_in_which_table_keys_are_written(spec: Path) -> None:
    path = spec / DECLARED
    path.write_text(path.read_text().replace("HASH_16: {hash_map: 16}", "HASH_16: {hash_map: 64}"))
    broker = generate(spec)["replispec/wire/rocketmq/broker.py"].decode()
    assert "hash_capacity=64" in broker
    assert "hash_capacity=16" not in broker


def test_a_dissector_is_what_the_family_declares(spec: Path) -> None:
    said = changed(spec, DECLARED, "    SerializeType: [JSON]", "    SerializeType: [JASON]")
    assert "the dissector needs SerializeType.JASON" in said


def test_two_families_with_one_code_in_one_framing_are_refused(spec: Path) -> None:
    pulled = int(RequestCode.PULL_MESSAGE)
    folder = spec / "proto" / "replispec" / "kafka" / "v1"
    for file in folder.glob("*.proto"):
        text = file.read_text().replace("LEADER_AND_ISR  = 4;", f"LEADER_AND_ISR  = {pulled};")
        file.write_text(text.replace("  code: 4  ", f"  code: {pulled}  "))
    assert generate(spec)
    said = changed(spec, "families/kafka.yaml", "  kafka: a size", "  remoting: a size")
    assert said.startswith("proto/replispec/rocketmq/v1/broker.proto:")
    assert f"PullMessageRequest: code {pulled} is " in said
    assert "LeaderAndIsrRequest of kafka too, see proto/replispec/kafka/v1/" in said
    assert "declare a framing of its own in families/rocketmq.yaml" in said


def test_a_framing_names_an_enum_for_its_bits_that_there_is(spec: Path) -> None:
    said = changed(spec, DECLARED, "flags: RemotingFlag", "flags: RemotingBits")
    assert "framing remoting: the family has no enum 'RemotingBits'" in said


def test_a_guest_that_names_a_message_as_its_host_does_is_refused(spec: Path) -> None:
    path = spec / "proto/replispec/rocketmq/v1/controller.proto"
    text = path.read_text()
    assert "message ElectMasterRequest {" in text
    guest = spec / "proto/replispec/raft/v1/member.proto"
    guest.write_text(guest.read_text().replace("RaftLeadRequest", "ElectMasterRequest"))
    machine = spec / "statemachines/raft/member.yaml"
    machine.write_text(machine.read_text().replace("RaftLeadRequest", "ElectMasterRequest"))
    with pytest.raises(SpecificationError, match=r"ElectMasterRequest: rocketmq has the same names"):
        generate(spec)
