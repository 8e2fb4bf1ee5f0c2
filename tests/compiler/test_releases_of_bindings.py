"""One event that releases say in different messages, and one answer that they are given in different ones."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.evolution.judge import changes
from replispec.compiler.evolution.read import read_specification
from replispec.compiler.evolution.verdict import Reach
from replispec.compiler.generate import generate, write
from replispec.compiler.model.message import SpecificationError
from tests.compiler.specification import SPEC

MACHINE = "statemachines/aged/aged.yaml"
MESSAGES = """\
syntax = "proto3";
package replispec.aged.v1;
import "replispec/options/v1/options.proto";

// What is asked for.
enum Ask {
  option (numbers) = {codes: true};
  ASK_UNSPECIFIED = 0;
  ASK_COUNT = 310;
  ASK_TELL = 311;
}

// How it went.
enum Told {
  TOLD_DONE = 0;
  TOLD_BUSY = 7;
}

// Asks by name.
message CountRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: REQUEST  sender: "CALLER"
                       receiver: "COUNTER"  order: "HASH_16"  versions: "other@2.1.." };
  string name = 1;
}

// Asks by person.
message OldCountRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: REQUEST  sender: "CALLER"
                       receiver: "COUNTER"  order: "HASH_16"  versions: "other@..2.0" };
  string person = 1;
}

// What is counted.
message CountResponse {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: RESPONSE  sender: "COUNTER"
                       receiver: "CALLER"  order: "HASH_16"  versions: "other@2.1.." };
  int64 total = 1;
}

// The same, by another name.
message OldCountResponse {
  option (on_wire) = { layout: HEADER_FIELDS  code: 310  kind: RESPONSE  sender: "COUNTER"
                       receiver: "CALLER"  order: "HASH_16"  versions: "other@..2.0" };
  int64 sum = 1;
}

// Tells somebody.
message TellRequest {
  option (on_wire) = { layout: HEADER_FIELDS  code: 311  kind: REQUEST  sender: "COUNTER"
                       receiver: "CALLER"  order: "HASH_16" };
  string what = 1;
}
"""
TEXT = """\
machine: aged
about: Who speaks with callers of all releases.
states:
  IDLE: {initial: true, about: Nothing more.}
variables:
  total: {type: int64, initial: 5}
missing: Told.BUSY
events:
  told: {sends: {TellRequest: {what: "'now'"}}}
  counted:
    fields: {who: string}
    received_as:
      - message: OldCountRequest
        releases: other@..2.0
        from: {who: header.person}
      - message: CountRequest
        releases: other@2.1..
        from: {who: header.name}
  heard:  {answer_to: TellRequest, codes: [Told.DONE, Told.BUSY], releases: other@..2.0}
  heeded: {answer_to: TellRequest, codes: Told.DONE, releases: other@2.1..}
  failed: {answer_to: TellRequest, otherwise: true, unanswered: true}
answers:
  answer_count:
    code: Told.DONE
    by_release:
      other@..2.0: {message: OldCountResponse, header: {sum: total}}
      other@2.1..: {message: CountResponse, header: {total: total}}
transitions:
  - {from: IDLE, event: counted, to: IDLE, do: [answer_count]}
  - {from: IDLE, event: [told, heard, heeded, failed], to: IDLE}
"""
DECLARED = """\
about: Somebody who counts for callers of all releases.
parties: {CALLER: who asks, COUNTER: who answers}
orders: {HASH_16: {hash_map: 16}}
"""
OLD, NEW = ("other", (2, 0)), ("other", (2, 1))


def written(spec: Path, text: str = TEXT) -> Path:
    """The specification with this machine."""
    shutil.copytree(SPEC / "proto/replispec/options", spec / "proto/replispec/options")
    for name, content in (
        ("proto/replispec/aged/v1/aged.proto", MESSAGES),
        ("families/aged.yaml", DECLARED),
        (MACHINE, text),
    ):
        (spec / name).parent.mkdir(parents=True, exist_ok=True)
        (spec / name).write_text(content, "utf-8")
    return spec


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The generated bindings."""
    folder = tmp_path_factory.mktemp("aged")
    write(generate(written(folder / "spec")), folder / "generated")
    path = list(sys.path)
    sys.path.insert(0, str(folder / "generated"))
    importlib.invalidate_caches()
    yield importlib.import_module("replispec.wire.aged.machines.aged_wire")
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith("replispec.wire.aged")]:
        del sys.modules[name]


@pytest.mark.parametrize(("release", "key"), [(OLD, "person"), (NEW, "name"), (None, "name")])
def test_a_request_is_read_as_its_release_says_it(wire: Any, release: Any, key: str) -> None:
    event = wire.bound().event_of(310, {key: "Ann"}, b"", release=release)
    assert event.who == "Ann"


def test_a_request_of_another_implementation_is_no_event(wire: Any) -> None:
    assert wire.bound().event_of(310, {"name": "Ann"}, b"", release=("else", (9, 9))) is None


@pytest.mark.parametrize(("release", "key"), [(OLD, "sum"), (NEW, "total"), (None, "total")])
def test_an_answer_is_said_as_the_release_of_who_asked_reads_it(wire: Any, release: Any, key: str) -> None:
    event = wire.bound().event_of(310, {"name": "Ann"}, b"")
    variables = wire.Variables()
    answer = wire.bound().answer_of("answer_count", variables, event, release=release)
    assert (answer.code, answer.ext_fields) == (0, {key: "5"})


@pytest.mark.parametrize(
    ("release", "code", "name"), [(OLD, 7, "Heard"), (NEW, 7, "Failed"), (NEW, 0, "Heeded")]
)
def test_an_answer_is_the_event_that_it_is_in_its_release(
    wire: Any, release: Any, code: int, name: str
) -> None:
    assert type(wire.outcome_of(311, code, {}, b"", release=release)).__name__ == name


REFUSED = [
    (
        "      other@2.1..: {m",
        "      other@2.0..: {m",
        "answer_count says two things in other@2.0.. and other@..2.0",
        "give releases that do not overlap",
    ),
    (
        "      other@2.1..: {m",
        "      other@2.1..2.2: {m",
        "answer_count says nothing to releases to come",
        "give one range without an end",
    ),
    (
        "    by_release:",
        "    message: CountResponse\n    by_release:",
        "answer_count says CountResponse, too",
        "drop message:",
    ),
    (
        "codes: Told.DONE, releases: other@2.1..}",
        "codes: Told.DONE}",
        "heeded and heard are both the answer 0 to TellRequest in other@..2.0",
        "releases: that do not overlap",
    ),
    (
        "unanswered: true}",
        "unanswered: true, releases: other@2.1..}",
        "failed is what no code names, in some releases only",
        "drop releases:",
    ),
    ("releases: other@..2.0\n", "releases: 2.0\n", "'2.0'", ""),
]
OVERLAP = "counted and counted are both CountRequest in other@1.9.. and other@..2.0"


@pytest.mark.parametrize(("old", "new", "fault", "advice"), REFUSED)
def test_what_two_releases_say_at_once_is_refused_with_place_and_advice(
    old: str, new: str, fault: str, advice: str, tmp_path: Path
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(SpecificationError) as caught:
        generate(written(tmp_path, TEXT.replace(old, new)))
    assert re.match(rf"{MACHINE}:[1-9][0-9]*: ", str(caught.value))
    assert fault in str(caught.value)
    assert advice in str(caught.value)


def test_two_events_of_one_request_in_one_release_are_refused(tmp_path: Path) -> None:
    text = TEXT.replace("        releases: other@2.1..\n", "        releases: other@1.9..\n")
    with pytest.raises(SpecificationError, match=re.escape(OVERLAP)):
        generate(written(tmp_path, text))


def test_what_is_sent_holds_what_the_machine_says(wire: Any) -> None:
    call = wire.told()
    assert (call.code, call.header.to_ext_fields()) == (311, {"what": "now"})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{what: \"'now'\"}", "{what: \"'late'\"}", "what is sent as 'late' instead of 'now'"),
        (
            "releases: other@2.1..\n",
            "releases: other@2.2..\n",
            "is heard of peers of other@2.2.., no longer of other@2.1..",
        ),
        ("{sum: total}", "{sum: total + 1}", "sum is answered with total + 1 instead of total"),
    ],
)
def test_what_is_sent_heard_or_answered_otherwise_changes_behaviour(
    old: str, new: str, says: str, tmp_path: Path
) -> None:
    assert TEXT.count(old) == 1
    before = read_specification(written(tmp_path / "before"))["aged"]
    after = read_specification(written(tmp_path / "after", TEXT.replace(old, new)))["aged"]
    assert [(each.kind, each.says) for each in changes(before, after)] == [(Reach.BEHAVIOUR, says)]
