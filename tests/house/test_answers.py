"""No role makes an answer of its own: what peers are told is said by the specification, and generated."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import ROOT, hand_written, shown

# The codes of answers, and what an answer is made of before it is bytes.
PARTS = frozenset({"ResponseCode", "Answer", "Prepared", "Refused"})
WIRE = "replispec.wire"
ANSWERED = frozenset({"answer", "answer_prepared"})
RUNTIME = ROOT / "roles" / "runtime" / "replispec" / "runtime"
# Who hands on what was generated: it is given answers, and looks into none.
CARRIERS = frozenset({"remoting", "primitives"})
# Who asks and never answers: it reads what others say.
ASKERS = (
    ROOT / "roles" / "administrator",
    ROOT / "roles" / "broker" / "replispec" / "broker" / "kafka" / "follower",
    ROOT / "roles" / "learner" / "replispec" / "learner" / "kafka" / "core",
    RUNTIME / "rocketmq" / "client",
    RUNTIME / "zookeeper" / "client",
    RUNTIME / "rocketmq" / "rules" / "clients.py",
)
HANDED_ON = {
    # Answers of a broker set wait for the log; those that never change are kept with their bytes.
    "roles/controller/replispec/controller/rocketmq/core/broker_set.py": {"Answer", "Prepared"},
    "roles/controller/replispec/controller/rocketmq/core/replies.py": {"Answer", "Prepared"},
    "roles/controller/replispec/controller/rocketmq/node.py": {"Prepared", "answer_prepared"},
    # What serves Kafka's requests answers; that is said once more in the design's form.
    "roles/broker/replispec/broker/kafka/designed.py": {
        *(f"Apache{each}Response" for each in ("Fetch", "LeaderAndIsr", "StopReplica")),
        *(f"Design{each}Response" for each in ("ReplicaFetch", "LeaderAndIsr", "StopReplica")),
    },
    # A message that had to wait may be refused when nobody is left who would catch the refusal.
    "roles/broker/replispec/broker/rocketmq/core/sends.py": {"Refused"},
}


def is_carrier(path: Path) -> bool:
    """Whether a file is of the side that puts answers on the wire."""
    return path.is_relative_to(RUNTIME) and bool(CARRIERS & set(path.relative_to(RUNTIME).parts))


def made_by_hand(source: str) -> Iterator[str]:
    """What a source imports that answers are made of, answers among the messages, and what it answers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_part = module.endswith(("codes", "bindings")) or "remoting" in module
            for name in (alias.name for alias in node.names):
                if (is_part and name in PARTS) or (module.startswith(WIRE) and name.endswith("Response")):
                    yield name
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ANSWERED:
                yield node.func.attr
        elif isinstance(node, ast.Attribute) and node.attr == "ResponseCode":
            yield node.attr


@pytest.mark.parametrize("path", list(hand_written("roles")), ids=shown)
def test_a_role_makes_no_answer_itself(path: Path) -> None:
    found = set() if is_carrier(path) else set(made_by_hand(path.read_text("utf-8")))
    if any(map(path.is_relative_to, ASKERS)):
        found -= {name for name in found if name.endswith("Response") or name == "ResponseCode"}
    assert found == HANDED_ON.get(shown(path), set())


@pytest.mark.parametrize(
    "source",
    [
        "from replispec.wire.rocketmq.codes import ResponseCode",
        "from replispec.wire.rocketmq.broker import SendMessageResponse",
        "from replispec.wire.rocketmq import codes\ncode = codes.ResponseCode.SUCCESS",
        "from replispec.runtime.primitives.bindings import Answer",
        "request.answer(0)",
    ],
)
def test_an_answer_by_hand_is_found(source: str) -> None:
    assert list(made_by_hand(source))
