"""Vectors for other languages say what our codecs, machines and rules say."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, get_args, get_type_hints

import pytest
from click.testing import CliRunner

from replispec.cli.main import command_line
from replispec.conformance.rocketmq.vector_frames import read_back
from replispec.conformance.vectors import machine_modules, vector_files, write_vectors
from replispec.runtime import families
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.json_messages import JsonMessage
from replispec.runtime.primitives.machines import Machine, Origin
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import SerializeType
from replispec.wire.rocketmq.commands import (
    REQUEST_BODIES,
    REQUEST_HEADERS,
    RESPONSE_BODIES,
    RESPONSE_HEADERS,
)
from replispec.wire.rocketmq.rules import Rules
from tests.wire.strategies import classes
from tests.wire_kafka.forms import VECTORS as KAFKA_MESSAGES

DOCUMENTS = {name: json.loads(data) for name, data in vector_files().items() if name.endswith(".json")}
MADE = [each for each in DOCUMENTS["rocketmq/frames.json"]["frames"] if "given" not in each]
WHOLE = [each for each in MADE if not each.get("refused")]
DAMAGED = [each for each in MADE if each.get("refused")]
MACHINES = [module for family in families.names() for module in machine_modules(family)]
RULES = [(rule, vector) for rule in DOCUMENTS["rocketmq/rules.json"]["rules"] for vector in rule["vectors"]]


def test_every_file_says_its_format_and_family() -> None:
    assert {name.rpartition("/")[2] for name in vector_files()} == {
        "frames.json", "machines.json", "rules.json", "README.md",
    }  # fmt: skip
    assert all(each["format"] == 1 and name.startswith(each["family"]) for name, each in DOCUMENTS.items())


def test_names_of_vectors_tell_them_apart() -> None:
    names = [each["name"] for each in MADE]
    assert len(names) == len(set(names)) > 500


def test_every_command_is_there_in_both_encodings() -> None:
    found = {
        (each["direction"], each["request_code"], each["encoding"]) for each in WHOLE if "encoding" in each
    }
    tables = {"request": REQUEST_HEADERS, "response": RESPONSE_HEADERS}
    assert found == {
        (way, code, kind.name) for way, table in tables.items() for code in table for kind in SerializeType
    }
    bodies = {
        (each["direction"], each["request_code"]) for each in WHOLE if each["direction"].endswith("body")
    }
    assert bodies == {
        *(("request body", code) for code in REQUEST_BODIES),
        *(("response body", code) for code in RESPONSE_BODIES),
    }


def test_every_message_that_stands_alone_is_there_whole_and_damaged() -> None:
    from replispec.wire.rocketmq import ha, store

    wanted = {each.__name__ for each in classes("decode", "encode", modules=(ha, store))}
    assert {each["message"] for each in WHOLE} >= wanted
    assert {each["message"] for each in DAMAGED} >= wanted


@pytest.mark.parametrize("word", ["usual", "absent", "zero", "negative", "maximum"])
def test_values_of_every_kind_are_tried(word: str) -> None:
    assert sum(f", {word}" in each["name"] for each in WHOLE) > 50


@pytest.mark.parametrize("name", sorted({each["message"] for each in WHOLE}))
def test_what_was_written_is_read_back(name: str) -> None:
    for vector in (each for each in WHOLE if each["message"] == name):
        read = json.loads(json.dumps(read_back(vector)))
        derived = {key for key, value in vector["fields"].items() if value is None and read[key] is not None}
        assert derived <= {"body_crc", "crc"}
        assert {**read, **dict.fromkeys(derived)} == vector["fields"], vector["name"]


@pytest.mark.parametrize("name", sorted({each["message"] for each in DAMAGED}))
def test_what_is_damaged_is_refused(name: str) -> None:
    for vector in (each for each in DAMAGED if each["message"] == name):
        with pytest.raises(RemoteProtocolError):
            read_back(vector)


def test_numbers_reach_the_bounds_of_their_types() -> None:
    largest = next(each for each in WHOLE if each["name"] == "HaHandshakeId, maximum")
    assert largest["fields"]["broker_id"] == (1 << 32) - 1
    smallest = next(
        each for each in WHOLE if each["name"] == "CONTROLLER_ALTER_SYNC_STATE_SET request, negative, JSON"
    )
    assert (smallest["fields"]["master_epoch"], smallest["fields"]["master_broker_id"]) == (
        -(1 << 31),
        -(1 << 63),
    )


def test_golden_bytes_of_the_other_family_are_handed_on() -> None:
    found = DOCUMENTS["kafka/frames.json"]["frames"]
    golden = [each for each in found if not each.get("refused")]
    assert len(golden) == KAFKA_MESSAGES.read_text().count("    message: ") > 0
    assert [each["hex"][:-2] for each in golden] == [each["hex"] for each in found if each.get("refused")]


@pytest.mark.parametrize("module", MACHINES, ids=lambda module: module.__name__.rpartition("wire.")[2])
def test_walks_take_every_edge_of_the_machine_and_no_other(module: ModuleType) -> None:
    machine: Machine[Any, Any] = module.MACHINE
    document = _document(module)
    kinds = {info.name: kind for kind, info in machine.events.items()}
    taken = set()
    for walk in document["walks"]:
        state = machine.initial
        for step in walk["steps"]:
            assert step["before"] == state.name
            at = len(step["guards_that_fail"])
            edges = machine.transitions[state, kinds[step["event"]]]
            edge = edges[at]
            assert step["guards_that_fail"] == [each.condition for each in edges[:at]]
            assert (step["guard"], step["effects"]) == (edge.condition or None, list(edge.do))
            taken.add((state, kinds[step["event"]], at))
            state = edge.to
            assert step["after"] == state.name
    assert taken == {
        (*pair, at) for pair, edges in machine.transitions.items() for at in range(len(edges))
    }  # every state of every machine is reached when guards are put aside


@pytest.mark.parametrize("module", MACHINES, ids=lambda module: module.__name__.rpartition("wire.")[2])
def test_events_without_an_edge_are_refused_and_every_other_event_has_one(module: ModuleType) -> None:
    machine: Machine[Any, Any] = module.MACHINE
    document = _document(module)
    refused = {(each["state"], each["event"]): each["fault_of"] for each in document["refused"]}
    entered = {edge.to for edges in machine.transitions.values() for edge in edges} | {machine.initial}
    for state in entered:
        for kind, info in machine.events.items():
            fault = "peer" if info.origin is Origin.PEER else "this side"
            wanted = None if machine.transitions.get((state, kind)) else fault
            assert refused.get((state.name, info.name)) == wanted
    ends = [(each["steps"] or [{"after": machine.initial.name}])[-1]["after"] for each in document["refused"]]
    assert ends == [each["state"] for each in document["refused"]]


@pytest.mark.parametrize("module", MACHINES, ids=lambda module: module.__name__.rpartition("wire.")[2])
def test_guards_that_edges_name_are_explained(module: ModuleType) -> None:
    document = _document(module)
    texts = [edge["guard"] or "" for edge in document["edges"]]
    named = {word.strip("()") for text in texts for word in text.replace("guard.", " guard.").split()}
    named = {word.removeprefix("guard.") for word in named if word.startswith("guard.")}
    assert named <= document["guards"].keys()
    assert all(document["guards"].values())


def _document(module: ModuleType) -> dict[str, Any]:
    family, name = module.__name__.split(".")[-3], module.MACHINE.name
    (found,) = [each for each in DOCUMENTS[f"{family}/machines.json"]["machines"] if each["name"] == name]
    return dict(found)


@pytest.mark.parametrize(("rule", "vector"), RULES, ids=lambda each: each["name"])
def test_rules_answer_as_the_vectors_say(rule: dict[str, Any], vector: dict[str, Any]) -> None:
    hints = get_type_hints(getattr(Rules, rule["name"]))
    given = {name: _value(hints[name], value) for name, value in vector["given"].items()}
    assert list(given) == list(rule["parameters"])
    answer = getattr(rules, rule["name"])(**given)
    assert _plain(answer) == vector["result"]


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    # What may be absent is of the one type that is left, with a list of them as that of its items.
    some = [each for each in get_args(hint) if each is not NoneType]
    if isinstance(hint, UnionType) and len(some) == 1:
        return _value(some[0], value)
    items = get_args(hint)
    if isinstance(value, list):
        found = [_value(items[0], each) for each in value]
        return frozenset(found) if "frozenset" in str(hint) else found
    if isinstance(value, dict) and items and items[0] is int:
        # JSON has no other keys than texts.
        return {int(key): _value(items[1], each) for key, each in value.items()}
    if not (is_dataclass(hint) and isinstance(hint, type)):
        return value
    kinds = get_type_hints(hint)
    return hint(**{name: _value(kinds[name], each) for name, each in value.items()})


def _plain(value: Any) -> Any:
    """An answer as JSON has it: of a message, what it has; keys are texts."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, JsonMessage):
        every = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "unknown"}
        return {name: _plain(each) for name, each in every.items() if each is not None}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_the_same_files_are_written_each_time(tmp_path: Path) -> None:
    vector_files.cache_clear()
    for path in write_vectors(tmp_path / "once"):
        name = path.relative_to(tmp_path / "once").as_posix()
        assert path.read_bytes() == vector_files()[name]
    before = dict(vector_files())
    vector_files.cache_clear()
    assert vector_files() == before


def test_the_command_names_what_it_wrote(tmp_path: Path) -> None:
    done = CliRunner().invoke(command_line, ["conformance", "vectors", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert sorted(line.split()[0] for line in done.output.splitlines()) == sorted(
        str(tmp_path / name) for name in vector_files()
    )


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(command_line, ["conformance", "vectors", "--out", str(tmp_path / "file" / "x")])
    assert done.exit_code == 1
    assert done.output.startswith("Error: ")
    assert len(done.output.splitlines()) == 1
