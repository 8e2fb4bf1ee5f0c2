"""`replispec produce` and `replispec consume`: lines, exit codes, one sentence where it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from replispec.cli.rocketmq import clients
from tests.broker.simulated_set import NAME_SERVER, BrokerSet
from tests.runtime.client.test_among_our_own import beside

TOPIC = "TopicC"


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> BrokerSet:
    """A set that serves, beside which commands run."""
    found = BrokerSet()
    found.pair()
    found.world.run_for(35_000)

    def visit(node: Any, _sealing: object) -> None:
        beside(found, node)
        found.until(lambda: node.is_done)

    monkeypatch.setattr(clients, "visit", visit)
    return found


def run(*words: str, given: str | None = None) -> Result:
    line = [*words, "-n", NAME_SERVER, "-t", TOPIC]
    return CliRunner().invoke(command_line, line, standalone_mode=False, input=given)


def test_what_was_sent_is_shown_where_it_lies_and_read_there(brokers: BrokerSet) -> None:
    sent = run("produce", "--count", "6", "--body", "number {n}", "--key", "k{n}", "--format", "json")
    assert sent.return_value == 0
    assert sent.stderr == "6 of 6 messages acknowledged\n"
    told = [json.loads(line) for line in sent.stdout.splitlines()]
    assert [each["status"] for each in told] == ["SEND_OK"] * 6
    brokers.world.run_for(35_000)
    read = run("consume", "--count", "6", "--format", "json")
    assert (read.return_value, read.stderr) == (0, "6 messages\n")
    found = [json.loads(line) for line in read.stdout.splitlines()]
    places = {(each["broker"], each["queue"], each["offset"]): each["body"] for each in found}
    assert places == {
        (each["broker"], each["queue"], each["offset"]): f"number {each['number']}" for each in told
    }


def test_lines_are_messages_and_lines_are_shown(brokers: BrokerSet) -> None:
    assert run("produce", "--lines", given="one\ntwo\r\nthree").return_value == 0
    brokers.world.run_for(35_000)
    shown = run("consume", "--idle", "2").stdout.splitlines()
    assert sorted(line.split(maxsplit=3)[3] for line in shown) == ["- one", "- three", "- two"]


def test_fewer_messages_than_wanted_are_a_failure(brokers: BrokerSet) -> None:
    assert run("produce", "--count", "3").return_value == 0
    brokers.world.run_for(35_000)
    assert run("consume", "--count", "3", "--idle", "2").return_value == 0
    few = run("consume", "--count", "4", "--idle", "2", "--quiet")
    assert (few.return_value, few.stdout, few.stderr) == (1, "", "3 messages\n")


def test_what_cannot_be_is_one_sentence_and_exit_code_1(brokers: BrokerSet) -> None:
    nowhere = run("consume", "--count", "1")
    assert nowhere.return_value == 1
    assert nowhere.stderr.splitlines()[-1] == f"replispec: no route to {TOPIC}, says {NAME_SERVER}"
    brokers.world.kill("broker1")
    brokers.world.kill("broker2")
    failed = run("produce", "--count", "2", "--quiet")
    assert failed.return_value == 1
    assert failed.stderr.splitlines()[0] == "0 of 2 messages acknowledged"
    assert failed.stderr.splitlines()[1].startswith("replispec: message 0: ")
    assert len(failed.stderr.splitlines()) == 2


@pytest.mark.usefixtures("brokers")
def test_a_place_that_is_none_is_a_wrong_command_line() -> None:
    assert "--from soon" in str(run("consume", "--from", "soon").exception)


def test_what_peers_wrote_does_not_act_on_a_terminal(brokers: BrokerSet) -> None:
    assert run("produce", "--body", "\x1b[31mred\nline").return_value == 0
    brokers.world.run_for(35_000)
    shown = run("consume", "--count", "1").stdout
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 1
