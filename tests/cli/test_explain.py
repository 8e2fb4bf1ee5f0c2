"""`replispec explain`: whatever a report, a summary, a result of the suite or a help text names is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache

import pytest
from click.testing import CliRunner, Result

from replispec.cli.explain_sources import WORDS, every_name, releases, shipped_cases
from replispec.cli.main import command_line
from replispec.cli.names import Index
from replispec.cli.roles import COMMANDS as ROLES
from replispec.cli.roles import EXAMPLE_FILES
from replispec.conformance.families import clauses, kinds
from replispec.conformance.results import CaseVerdict, Standing
from replispec.explorer.report import NO_EDGE, system_named, systems
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import Proof
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import FailOver, Latency
from replispec.replay.report.moments import Moment, MomentKind
from replispec.replay.report.summary import CaptureRow, Summary
from replispec.runtime import families
from replispec.runtime.primitives.invariants import Verdict
from tests.cli.command import CAPTURES


@cache
def index() -> Index:
    return Index(every_name(shipped_cases(), command_line), releases())


def explain(*words: str) -> Result:
    return CliRunner().invoke(command_line, ["explain", *words], standalone_mode=False)


def unknown(names: Iterator[str]) -> list[str]:
    return sorted({name for name in names if not index().find(name)})


def expectations() -> Iterator[str]:
    """What the expected summaries of all captures name: rules and their verdicts."""
    for path in sorted((CAPTURES / "expected").glob("*.json")):
        for findings in json.loads(path.read_bytes())["groups"].values():
            for rule, found in findings.items():
                yield rule
                yield found["verdict"]


def suite() -> Iterator[str]:
    """What a result of the suite names."""
    yield from kinds()
    for family in kinds().values():
        for kind in family.kinds:
            yield from kind.profiles
    for case in shipped_cases():
        yield from (case.id, case.clause, case.topic, case.profile, *case.bugs)
        # Words that mean something else elsewhere: found as what they are here.
        yield from (f"severity {case.severity}", f"basis {case.basis}")


def specification() -> Iterator[str]:
    """Clauses, machines with states and events, codes by name and number, of every family."""
    for known in clauses().values():
        yield from (known.clause.id, f"severity {known.clause.severity}", f"basis {known.clause.basis}")
    for family in families.names():
        for enum in ("RequestCode", "ResponseCode"):
            for value in getattr(families.wire(family, "codes"), enum, ()):
                yield from (value.name, str(int(value)))
        watched = getattr(families.wire(family, "machines"), "WATCHED", {})
        for finding, machine in watched.items():
            yield finding
            yield from (f"{machine.name}.{state.name}" for state in machine.states)


def explored() -> Iterator[str]:
    """What an exploration prints of a system: its promises, acts and budgets, alone and after the system."""
    yield NO_EDGE
    for system in map(system_named, systems()):
        named = (*(each.name for each in system.properties), *(each.name for each in system.acts))
        for name in (*system.budgets, *named):
            yield from (name, f"{system.name}.{name}")


def commands() -> Iterator[str]:
    """Commands and options, as `--help` prints them."""
    for name, command in command_line.commands.items():
        yield f"replispec {name}"
        for option in command.params:
            yield from (each for each in option.opts if each.startswith("-"))


def printed_parameters() -> Iterator[str]:
    """What `--print-config` shows of each role."""
    for role in ROLES:
        settings = [word for line in EXAMPLE_FILES[role.name or ""] for word in ("--set", line)]
        printed = CliRunner().invoke(role, ["--print-config", *settings], standalone_mode=False)
        names = [line.partition("=")[0] for line in printed.output.splitlines()]
        assert len(names) > 5, printed.output
        yield from names


def summaries() -> Iterator[str]:
    """The keys of summary.json, the moments of fail-overs, and the columns of the table of captures."""
    yield from Summary("local").document()
    for kind in (CaptureRow, LossRow, FailOver, Moment, Latency, FindingRow, Proof):
        names = {each.name for each in fields(kind)} - {"proofs"}
        yield from (f"key of summary.json {name}" for name in names)
    yield from (f"moment of a fail-over {kind}" for kind in MomentKind)
    yield from ("remoting", "HA frames", "undecoded", "foreign", "holes", "counts", "evidence")


@pytest.mark.parametrize(
    "names", [expectations, suite, specification, explored, commands, printed_parameters, summaries]
)
def test_every_name_that_is_printed_is_known(names: object) -> None:
    assert callable(names)
    assert unknown(names()) == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("verdict of a replay", Verdict),
        ("verdict of a case", CaseVerdict),
        ("standing of a case", Standing),
    ],
)
def test_every_verdict_has_words(kind: str, words: type[Verdict | CaseVerdict | Standing]) -> None:
    assert sorted(WORDS[kind]) == sorted(word.value for word in words)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param(
            "RIP44-ALTER-1",
            [
                "clause RIP44-ALTER-1 (rocketmq)",
                "Written in: spec/clauses/rocketmq/",
                "Cases of the suite (",
                "Cited by (",
            ],
            id="a clause",
        ),
        pytest.param(
            "controller/elect/RIP44-ELECT-13/1",
            [
                "case controller/elect/RIP44-ELECT-13/1",
                "Steps:",
                "--case 'controller/elect/RIP44-ELECT-13/1'",
            ],
            id="a case",
        ),
        pytest.param(
            "elect", ["elect stands for 2 things", "rule elect", "topic elect"], id="a name of two things"
        ),
        pytest.param("rule elect", ["Demanded by:", "RIP44-ELECT-1: ", "Judged in traffic: "], id="a rule"),
        pytest.param(
            "broker_set.LED",
            ["Part of: machine broker_set", "Judged in traffic: broker-set-machine"],
            id="a state",
        ),
        pytest.param("rocketmq broker_set.LED", ["state broker_set.LED"], id="as a comparison prints it"),
        pytest.param("STATE led", ["state broker_set.LED"], id="in any case, after its kind"),
        pytest.param(
            "broker_set-machine", ["machine broker_set", "What to do: a finding names"], id="a finding"
        ),
        pytest.param(
            "one-master-per-epoch",
            ["invariant one-master-per-epoch", "report.html"],
            id="a rule that was broken",
        ),
        pytest.param("1001", ["message AlterSyncStateSetRequest", "value RequestCode."], id="a code"),
        pytest.param("alteration_asked", ["event broker_set.alteration_asked"], id="an event"),
        pytest.param(
            "notify_brokers", ["effect broker_set.notify_brokers", "election_asked"], id="an effect"
        ),
        pytest.param(
            "replication.strangers",
            [
                "budget replication.strangers (rocketmq)",
                "brings_a_log: It has one more message of another set, and no epochs.",
                "at most: 2",
                "another number: replispec spec explore replication --set strangers=NUMBER",
            ],
            id="a budget of a system",
        ),
        pytest.param(
            "sync_state_set.lost", ["Messages that do not arrive.", "at most: 1"], id="a budget of no act"
        ),
        pytest.param(
            NO_EDGE, [f"property {NO_EDGE}", "Every system promises it"], id="what every system promises"
        ),
        pytest.param("B12", ["defect B12", "controller/elect/RIP44-ELECT-5/3"], id="a known defect"),
        pytest.param("unknown", ["verdict of a replay unknown"], id="a verdict"),
        pytest.param("conformance run", ["command replispec conformance run"], id="a command"),
        pytest.param("5.1.1", ["release 5.1.1", "Begins with it:", "message HaHandshakeId"], id="a release"),
        pytest.param(
            "apache@5.1.0..", ["release 5.1.0", "Ends with it:", "message HaHandshakeAddress"], id="a range"
        ),
    ],
)
def test_what_is_said_of(name: str, lines: list[str]) -> None:
    shown = explain(*name.split(" "))
    assert shown.return_value == 0
    assert [line for line in lines if line not in shown.stdout] == []


@pytest.mark.parametrize(
    ("name", "near"),
    [("alteration_aksed", "alteration_asked"), ("RIP44-ALTR-1", "RIP44-ALTER-1"), ("brokerse", "broker_set")],
)
def test_what_may_have_been_meant_is_named(name: str, near: str) -> None:
    refusal = str(getattr(explain(name).exception, "message", ""))
    assert refusal.startswith(f"unknown name {name!r}; is it one of: ")
    assert near in refusal


def test_what_a_list_of_several_things_shows_is_known() -> None:
    """The list says `give one of these`; so do messages that name things with their kind and family."""
    assert [name.shown for name in index().names if name not in index().find(name.shown)] == []


def test_every_name_is_known_after_its_family() -> None:
    named = [name for name in index().names if name.family]
    spelled = [
        (each, text.format(each)) for each in named for text in ("{0.family} {0.id}", "{0.family}.{0.id}")
    ]
    assert [text for name, text in spelled if name not in index().find(text)] == []


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("broker set", "machine broker_set"),
        ("BrokerSet", "machine broker_set"),
        ("brokerSet.led", "state broker_set.LED"),
        ("alterSyncStateSetRequest", "message AlterSyncStateSetRequest"),
        ("alter_sync_state_set_request", "message AlterSyncStateSetRequest"),
        ("RIP44 ELECT 13", "clause RIP44-ELECT-13"),
        ("rip44_elect_13.", "clause RIP44-ELECT-13"),
        ("register check code", "field ApplyBrokerIdRequest.register_check_code"),
        ("all ack in sync state set", "parameter allAckInSyncStateSet"),
        ("ha_max_time_slave_not_catchup", "parameter haMaxTimeSlaveNotCatchup"),
        ("patience", "option replispec conformance run --patience"),
        ("code 1001", "message AlterSyncStateSetRequest"),
        ("0x3e9", "message AlterSyncStateSetRequest"),
        ("RequestCode 1001", "value RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET"),
        ("'clause RIP44-ELECT-13 (rocketmq)':", "clause RIP44-ELECT-13"),
        ("standing of a case unexpected pass", "standing of a case unexpected pass"),
    ],
)
def test_a_name_is_known_however_its_words_are_put_together(typed: str, found: str) -> None:
    shown = [name.shown.removesuffix(f" ({name.family})") for name in index().find(typed)]
    assert found in shown


def test_a_release_with_which_nothing_begins_is_one() -> None:
    for typed in ("5.4.0", "v5.4.0", "apache-5.4.0", "release 5.4.0"):
        shown = explain(*typed.split())
        assert shown.return_value == 0
        assert shown.stdout.startswith("release 5.4.0\n  Nothing begins or ends with it")
    assert "unknown name" in str(getattr(explain("5.4.77").exception, "message", ""))


@pytest.mark.parametrize("typed", ["", " ", "''"])
def test_nothing_is_no_name(typed: str) -> None:
    assert index().find(typed) == []


def test_what_is_near_nothing_is_refused_with_the_way_to_the_names() -> None:
    refusal = str(getattr(explain("?").exception, "message", ""))
    assert refusal == "unknown name '?'; `replispec explain --help` says what is known"
