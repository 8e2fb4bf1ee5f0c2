"""The texts of the commands are those of Apache's mqadmin 5.4.0 for the same answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from replispec.administrator.rocketmq.controllers import Wanted
from replispec.administrator.rocketmq.health import judged
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.administrator.rocketmq.status import WhereToAsk, status
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import COMMANDS, cluster_list, controller_text, status_text
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.wire.rocketmq.controller import ElectMasterResponse
from tests.administrator.recorded import CLUSTERS, Recorded, recorded

MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")
NUMBER = re.compile(r"\d[\d.]*")
# What mqadmin does at once, and ours after a typed word.
CONFIRMED = {"resetOffsetByTime": ["--yes"]}
NUMBERS = re.compile(r"(N ?)+")


def answering(monkeypatch: pytest.MonkeyPatch, cluster: Recorded) -> None:
    """Have commands asked of what was recorded."""

    def ask(plan: Any) -> Any:
        try:
            return cluster.carried_out(plan)
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    for place in COMMANDS.values():
        module = import_module(place)
        if hasattr(module, "ask"):
            monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(cluster_list, "wall_ms", lambda: cluster.at_ms)


def printed(cluster: Recorded, line: str, *more: str) -> str:
    """What our command prints for a command line of mqadmin."""
    name_server = next(key[0] for key in cluster.answers if key[1] == "GET_BROKER_CLUSTER_INFO")
    words = ["admin", *line.split(), *more, *CONFIRMED.get(line.split(maxsplit=1)[0], ())]
    done = CliRunner().invoke(command_line, words, env={"NAMESRV_ADDR": name_server})
    assert done.exit_code == 0, (line, done.output, done.exception)
    return done.stdout


def lines_sorted(text: str) -> str:
    """Java prints a configuration in the order of a hash table that grew."""
    return "\n".join(sorted(text.splitlines()))


def hours_left_out(text: str) -> str:
    """How old the oldest message is depends on when it was asked, and so does the timer's progress."""
    text = re.sub(r"\d+\.\d\d +(?=\d\.\d{4} )", "H ", text)
    return re.sub(r" \d+-(?=\d+\()", " P-", text)


def figures_left_out(text: str) -> str:
    """What mqadmin was told, and what was told a second later: the same names, and as many texts."""
    pairs = (line.partition(": ") for line in text.splitlines())
    return "\n".join(name + NUMBERS.sub("N", NUMBER.sub("N", value)).rstrip() for name, _, value in pairs)


def moments_left_out(text: str) -> str:
    """The same for replication: speeds and times."""
    return re.sub(r"\d+\.\d\d", "S", MOMENT.sub("T", text))


def speeds_left_out(text: str) -> str:
    """How fast messages come and are read was told a second later: whole numbers by group."""
    text = re.sub(r"(?<= TPS: )[\d.]+", "S", text)
    return re.sub(r"(?<=CLUSTERING {6})\d+", "S", text)


SAME: Mapping[str, Callable[[str], str]] = {
    "getSyncStateSet": str,
    "getBrokerEpoch": str,
    "getControllerMetaData": str,
    "getControllerConfig": lines_sorted,
    "haStatus": moments_left_out,
    "clusterList": hours_left_out,
    "brokerStatus": figures_left_out,
    "topicRoute": str,
    "topicStatus": speeds_left_out,
    "consumerProgress": speeds_left_out,
    "resetOffsetByTime": str,
}


def in_this_zone(text: str) -> str:
    """Times are printed in the zone of a machine; mqadmin's was UTC."""

    def here(found: re.Match[str]) -> str:
        told = datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return told.astimezone().strftime("%Y-%m-%d %H:%M:%S")

    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", here, text)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("command", SAME)
def test_each_command_prints_what_mqadmin_prints(
    monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    cluster = recorded(name)
    answering(monkeypatch, cluster)
    lines = [each for each in cluster.texts if each.split()[0] == command]
    assert lines
    for line in lines:
        assert SAME[command](printed(cluster, line)) == SAME[command](in_this_zone(cluster.texts[line])), line


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_text_of_mqadmin_that_a_command_of_ours_has_is_compared(name: str) -> None:
    told = {each.split()[0] for each in recorded(name).texts if recorded(name).texts[each].strip()}
    assert set(COMMANDS).intersection(told) == set(SAME) | CHANGING.intersection(told)


CHANGING = {"updateControllerConfig", "electMaster"}


def test_what_was_changed_is_told_as_mqadmin_tells_it() -> None:
    cluster = recorded("replispec")
    line = cluster.command("updateControllerConfig")
    address = line.split()[2]
    said = controller_text.configured([address], "enableElectUncleanMaster", "false").text
    assert said == cluster.texts[line]
    key = next(each for each in cluster.answers if each[1] == "CONTROLLER_ELECT_MASTER")
    fields = cluster.answers[key].header.ext_fields or {}
    answer = ElectMasterResponse.from_ext_fields(fields)
    text = controller_text.elected(Wanted("ReplispecLab", "broker-a", 1), answer).text
    # Of the next election of the kind: other numbers, the same lines.
    assert NUMBER.sub("N", text) == NUMBER.sub("N", cluster.texts[cluster.command("electMaster")])


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("command", SAME)
def test_the_same_is_had_as_rows(monkeypatch: pytest.MonkeyPatch, name: str, command: str) -> None:
    cluster = recorded(name)
    answering(monkeypatch, cluster)
    for line in (each for each in cluster.texts if each.split()[0] == command):
        rows = json.loads(printed(cluster, line, "--format", "json"))
        assert rows
        assert len({tuple(row) for row in rows}) == 1
        assert yaml.safe_load(printed(cluster, line, "--format", "yaml")) == rows
        table = printed(cluster, line, "--format", "table").splitlines()
        assert table[0].split() == list(rows[0])
        assert len(table) == 1 + len(rows)


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_status_of_each_cluster_is_whole_and_it_is_healthy(name: str) -> None:
    cluster = recorded(name)
    places = {key[1]: key[0] for key in cluster.answers}
    controller, name_server = places["CONTROLLER_GET_METADATA_INFO"], places["GET_BROKER_CLUSTER_INFO"]
    found = cluster.carried_out(status(WhereToAsk((controller,), (name_server,))))
    assert judged(found, lag_bytes=0) == []
    rows = status_text.shown(found).rows
    assert [(row["id"], row["role"], row["alive"], row["in_sync"], row["lag"]) for row in rows] == [
        (1, "master", True, True, 0),
        (2, "replica", True, True, 0),
    ]
    assert [row["master_epoch"] for row in rows] == [1, None]
