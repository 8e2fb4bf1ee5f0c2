"""What the cases of kind ha-master are many enough for, counted from the files."""

from collections.abc import Iterator

import pytest

from replispec.conformance.cases import cases_folder, load
from replispec.conformance.expectations import load_expected
from replispec.conformance.model import AllowedOutcome, Case, CaseStep, Raw, Replicate, Sent
from replispec.conformance.rocketmq.family import FAMILY
from replispec.conformance.vocabulary import parse_release
from replispec.wire.rocketmq.clauses import CLAUSES
from replispec.wire.rocketmq.codes import HaConnectionState
from replispec.wire.rocketmq.ha import HaHandshakeId, HaReport

CASES = load("ha-master")
BY_ID = {case.id: case for case in CASES}
LISTED = cases_folder(FAMILY.name) / "expected_failures.yaml"
EXPECTED = load_expected(LISTED, FAMILY, "ha-master", set(BY_ID))["apache"]
CASES_MINIMUM = 100
DISTINCT_MINIMUM = 90
FIRST_MINIMUM = 10

# Bugs of Apache RocketMQ that one master can show on its replication port; those of its newest release.
SHOWN = {"E4", "E5", "E8", "E10", "E17", "F2", "F3", "F4", "F6", "F8", "F9", "F10"}
FOUND = {"E8", "E17", "F9", "F10", "E10"}

TOPICS = {
    "addressed",
    "connections",
    "epochs",
    "handshake",
    "learner",
    "corners",
    "members",
    "position",
    "segments",
    "states",
    "timers",
    "transfer",
    "written",
}


def _of(release: str) -> list[Case]:
    wanted = parse_release(release)
    assert wanted is not None
    return [case for case in CASES if case.releases.holds("apache", wanted)]


def _kind(step: CaseStep) -> str:
    if isinstance(step.action, Sent):
        return step.action.command or step.action.message or "a code without a name"
    return type(step.action).__name__


def _answer(outcome: AllowedOutcome) -> str:
    parts = (outcome.codes, outcome.message, outcome.header, outcome.body, outcome.fields)
    return repr((*parts, outcome.closed, outcome.silence, outcome.replicated))


def _deciding() -> Iterator[tuple[str, str, str]]:
    """(clause, kind of step, allowed answers) of each case's last judged step."""
    for case in CASES:
        last = [step for step in case.steps if step.expect][-1]
        yield case.clause, _kind(last), repr([_answer(outcome) for outcome in last.expect])


def _raw() -> list[Raw]:
    return [step.action for case in CASES for step in case.steps if isinstance(step.action, Raw)]


def test_the_cases_are_many_however_they_are_counted() -> None:
    assert len(CASES) >= CASES_MINIMUM
    assert len(set(_deciding())) >= DISTINCT_MINIMUM
    assert {case.topic for case in CASES} == TOPICS


def test_both_generations_of_the_handshake_have_cases_and_none_has_those_of_the_other() -> None:
    first, second = _of("5.1.0"), _of("5.4.0")
    assert len(first) >= FIRST_MINIMUM
    assert not {case.id for case in first} & {case.id for case in second}
    assert len(first) + len(second) == len(CASES)


def test_handshakes_and_reports_are_cut_at_every_byte_and_where_releases_read_them() -> None:
    handshake, report = len(HaHandshakeId().encode()), len(HaReport().encode())
    kept = {each.keep for each in _raw() if each.of and each.of[0].message == "HaHandshakeId"}
    assert {report - 1, report, handshake - 1} <= kept, "around the size that is read too early"
    by_byte = {each.of[0].message for each in _raw() if each.each}
    assert by_byte == {"HaHandshakeId", "HaHandshakeAddress", "HaReport"}
    assert any(len(each.of) > 1 for each in _raw()), "several messages in one piece"


def test_every_state_that_no_replica_sends_is_tried_and_numbers_beyond_all_states() -> None:
    sent = {int.from_bytes(bytes.fromhex(each.hex)[:4], "big", signed=True) for each in _raw() if each.hex}
    spoken = {HaConnectionState.HANDSHAKE, HaConnectionState.TRANSFER}
    assert {state for state in HaConnectionState if state not in spoken} <= sent
    assert min(sent) < 0
    assert max(HaConnectionState) + 1 in sent


def test_every_bug_that_a_master_can_show_has_a_case() -> None:
    assert {bug for case in CASES for bug in case.bugs} == SHOWN


def test_the_bugs_of_the_newest_release_are_expected_failures_with_their_mark() -> None:
    assert {entry.bug for entry in EXPECTED if entry.bug} == FOUND
    for entry in EXPECTED:
        assert not entry.bug or entry.bug in BY_ID[entry.case].bugs, entry


def test_each_expected_failure_is_of_a_release_that_its_case_is_played_for() -> None:
    for entry in EXPECTED:
        newest = entry.releases.last or (9, 9, 9)
        assert BY_ID[entry.case].releases.holds("apache", entry.releases.first or newest), entry


def test_what_a_release_demands_of_itself_is_never_expected_to_fail() -> None:
    """A failure of Apache RocketMQ is one against the proposal, or a defect of some releases that a later one
    mends; else the case demands too much."""
    own = [entry for entry in EXPECTED if BY_ID[entry.case].basis == "apache"]
    assert [entry.case for entry in own if not (entry.bug and entry.releases.last)] == []


def test_a_demand_is_no_stricter_than_its_clause() -> None:
    """A recommendation is tried as one."""
    for case in CASES:
        clause = CLAUSES[case.clause]
        assert case.severity == "should" or clause.severity == "REQUIRED", case.id


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_changes_the_master_for_others_is_played_alone(case: Case) -> None:
    """Stored messages move the end of the log, reports of registered replicas change the SyncStateSet."""
    commands = {
        step.action.command for step in (*case.prepared, *case.steps) if isinstance(step.action, Sent)
    }
    changing = commands & {"SEND_MESSAGE_V2", "CONTROLLER_APPLY_BROKER_ID", "CONTROLLER_ALTER_SYNC_STATE_SET"}
    assert case.alone or not changing
    asked = {"broker", "controller"} if "CONTROLLER_APPLY_BROKER_ID" in commands else set[str]()
    assert asked <= set(case.needs)


def test_each_count_of_a_replicated_log_that_tells_a_fault_is_demanded_to_be_zero_somewhere() -> None:
    judged = {
        name
        for case in CASES
        for step in case.steps
        if isinstance(step.action, Replicate)
        for outcome in step.expect
        for name, value in (outcome.replicated or {}).items()
        if value == 0
    }
    faults = {"gaps", "overlaps", "crosses_epoch", "mislabelled", "strays"}
    assert faults | {"confirm_decreased", "confirm_beyond_log", "confirm_negative"} <= judged
