"""What peers said stands on a terminal as what it is: nothing acts there, no name makes lines of its own."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import replispec.cli.rocketmq.admin
from replispec.administrator.rocketmq.brokers import Brokers
from replispec.administrator.rocketmq.health import Observation
from replispec.administrator.rocketmq.logical_topics import LogicalPart, LogicalTopic
from replispec.administrator.rocketmq.plans import NotAsWantedError, SilentError
from replispec.administrator.rocketmq.status import ControllerView, MemberStatus, SetStatus, Status
from replispec.cli.peers_text import Spelling
from replispec.cli.rocketmq.admin import (
    broker_text,
    cluster_text,
    controller_text,
    logical_text,
    route_text,
    status_text,
)
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.cli.shown import FORMATS, JSON, TEXT, YAML, Display, show, written
from replispec.runtime.rocketmq.queues import LogicalQueue, PhysicalQueue, Segment
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.codes import LogicalQueueState
from replispec.wire.rocketmq.controller import (
    EpochEntry,
    EpochEntryCache,
    GetMetadataResponse,
    ReplicaIdentity,
    ReplicasInfo,
)

HOSTILE = (
    "a\nbroker-a  1  127.0.0.1:1  master",
    "a\r\nFAULT  b: gone",
    "\x1b[2J\x1b]0owned\x07",
    "\u202egpj",
    "a\u2028b\u2029c\x85d",
    "\ud800",
    "a\tb",
    "\x7f\x9b2J",
)
PLAIN = "broker-ä 日本"


def _texts(name: str) -> Iterator[Display]:
    """What is shown of peers that call themselves so."""
    who = ReplicaIdentity(broker_name=name, broker_id=1, broker_address=name, alive=True)
    record = ReplicasInfo(master_broker_id=1, master_address=name, master_epoch=1, in_sync_replicas=[who])
    yield controller_text.sync_state_sets({name: record})
    yield controller_text.metadata(GetMetadataResponse(group=name, peers=name, controller_leader_id=name))
    yield controller_text.configurations({name: {name: name}})
    epochs = EpochEntryCache(cluster_name=name, broker_name=name, broker_id=1, epoch_list=[EpochEntry()])
    yield broker_text.epochs({name: epochs})
    yield broker_text.figures({name: RuntimeInfo(table={name: name})}, of_cluster=True)
    known = Brokers({name: {name: {0: name}}})
    yield cluster_text.listed(known, {name: SilentError(name)}, 0)
    yield cluster_text.more(known, {name: RuntimeInfo(table={name: name})}, 0)
    yield logical_text.table(LogicalTopic(name, {name: _part(name)}))
    view = ControllerView(name, sets={name: record}, why=name)
    member = MemberStatus(1, name, True, True, why=name)
    status = Status([view], [SetStatus(name, record, [member])], missing=[name], without_record=name)
    yield status_text.shown(status)
    yield status_text.health(status, [Observation(name, name, fault=True)])


def _part(name: str) -> LogicalPart:
    queue = LogicalQueue(0, (Segment(PhysicalQueue(name, 0), LogicalQueueState.NORMAL, 0),))
    return LogicalPart(name, name, has_topic=True, writes=1, queues={0: queue})


def _acting(text: str) -> set[str]:
    return {each for each in text if not each.isprintable() and each not in "\n\t"}


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_acts_on_a_terminal_or_makes_lines_of_its_own(name: str) -> None:
    for hostile, plain in zip(_texts(name), _texts("plain"), strict=True):
        for form in ("text", "table"):
            shown, wanted = written(hostile, form), written(plain, form)
            assert not _acting(shown), ascii(shown)
            assert name not in shown
            assert (shown.count("\n"), shown.count("\t")) == (wanted.count("\n"), wanted.count("\t"))
        assert not any(_acting(line) or "\n" in line for line in hostile.faults)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_programs_are_given_names_as_they_are(name: str) -> None:
    for found in _texts(name):
        assert json.dumps(name)[1:-1] in written(found, JSON)
        assert json.dumps(name)[1:-1] in written(found, YAML)


def test_ordinary_names_stand_as_they_are() -> None:
    for found in _texts(PLAIN):
        assert PLAIN in written(found, TEXT)


def test_what_is_shown_as_json_spells_out_itself() -> None:
    name = "\x1b\n\u202e\ud800"
    assert route_text._pretty(name, 0).isascii()
    assert logical_text.mapping("T", [_part(name)]).text.isascii()


def _tellers() -> Iterator[Any]:
    folder = Path(replispec.cli.rocketmq.admin.__path__[0])
    for path in sorted(folder.glob("*_text.py")):
        module = importlib.import_module(f"replispec.cli.rocketmq.admin.{path.stem}")
        for name, each in inspect.getmembers(module, inspect.isfunction):
            told = inspect.signature(each).return_annotation
            if each.__module__ == module.__name__ and not name.startswith("_") and told == "Display":
                yield each


def test_whatever_makes_a_text_of_what_peers_said_spells_it_out() -> None:
    found = list(_tellers())
    assert len(found) > 10
    assert [each.__name__ for each in found if not hasattr(each, "__wrapped__")] == ["mapping", "route"]


def test_what_is_one_object_stays_one_and_an_error_stays_its_kind() -> None:
    one = SilentError("a\nb")
    spelt = Spelling()
    first, second = spelt.copied([one, one])
    assert first is second
    assert (type(first), str(first)) == (SilentError, "a\\u000ab")
    assert spelt.has_spelt


@pytest.mark.parametrize("form", FORMATS)
def test_faults_and_refusals_are_one_line_each(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    show(lambda: Display("", [], faults=["x\x1b[31m\ny"]), form, None)
    RefusedToAskError(str(NotAsWantedError("refuses: \x1b[2J\r\nhealthy"))).show()
    assert capsys.readouterr().err == (
        "replispec: x\\u001b[31m\\u000ay\nreplispec: refuses: \\u001b[2J\\u000d\\u000ahealthy\n"
    )
