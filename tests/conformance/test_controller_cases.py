"""What the cases of kind controller are many enough for, counted from the files."""

from collections.abc import Iterator

import pytest

from replispec.conformance.cases import cases_folder, load
from replispec.conformance.expectations import load_expected
from replispec.conformance.model import AllowedOutcome, Case, CaseStep, Raw, Sent
from replispec.conformance.rocketmq.family import ADMINISTRATOR, FAMILY
from replispec.conformance.vocabulary import parse_release
from replispec.wire.rocketmq.clauses import CLAUSES

CASES = load("controller")
EXPECTED = cases_folder(FAMILY.name) / "expected_failures.yaml"
FIRST, SECOND = "5.1.0", "5.4.0"  # a release of each generation
DISTINCT_MINIMUM = 150

# Bugs of Apache RocketMQ that one controller can show on the wire, and those that its newest release has.
IDENTITY = {"A1", "A2", "A4", "A5"}
DECISIONS = {"B1", "B2", "B6", "B8", "B9", "B10", "B11", "B12", "B13", "B14"}
DEMANDED = {"B17", "B18"}  # who has mended one fails: that is asked of what follows the releases alone
SHOWN = IDENTITY | DECISIONS | {"B19", "C1", "C2", "D3", "E9", "G6"}
FOUND = {"A4", "A5", "B9", "B10", "B11", "B12", "B13", "B14"}
MENDED = {"B19", "E9"}  # found in releases before the newest

# Cases that read state back by 1004 and must not look at it first: they judge what the election itself told.
JUDGE_WHAT_IS_SHOWN = {"RIP44-REPLICAINFO-1", "RIP44-ELECT-12", "RIP44-ELECT-3"}

# Every code that an active controller can answer a request of a broker or an administrator with.
CODES = {
    "CONTROLLER_ALTER_SYNC_STATE_SET": (
        "SUCCESS",
        "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED",
        "CONTROLLER_INVALID_MASTER",
        "CONTROLLER_FENCED_MASTER_EPOCH",
        "CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH",
        "CONTROLLER_INVALID_REPLICAS",
        "CONTROLLER_BROKER_NOT_ALIVE",
    ),
    "CONTROLLER_ELECT_MASTER": (
        "SUCCESS",
        "CONTROLLER_MASTER_STILL_EXIST",
        "CONTROLLER_ELECT_MASTER_FAILED",
        "CONTROLLER_MASTER_NOT_AVAILABLE",
        "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED",
    ),
    "CONTROLLER_REGISTER_BROKER": ("SUCCESS", "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED"),
    "CONTROLLER_GET_REPLICA_INFO": ("SUCCESS", "CONTROLLER_BROKER_METADATA_NOT_EXIST"),
    "CONTROLLER_GET_METADATA_INFO": ("SUCCESS",),
    "CONTROLLER_GET_SYNC_STATE_DATA": ("SUCCESS", "SYSTEM_ERROR"),
    "UPDATE_CONTROLLER_CONFIG": ("SUCCESS", "NO_PERMISSION"),
    "GET_CONTROLLER_CONFIG": ("SUCCESS",),
    "CLEAN_BROKER_DATA": ("SUCCESS", "CONTROLLER_INVALID_CLEAN_BROKER_METADATA"),
    "CONTROLLER_GET_NEXT_BROKER_ID": ("SUCCESS",),
    "CONTROLLER_APPLY_BROKER_ID": ("SUCCESS", "CONTROLLER_BROKER_ID_INVALID"),
    "BROKER_HEARTBEAT": ("SUCCESS", "CONTROLLER_INVALID_REQUEST"),
}
CODES_OF_THE_FIRST_GENERATION = {
    "CONTROLLER_ALTER_SYNC_STATE_SET": CODES["CONTROLLER_ALTER_SYNC_STATE_SET"],
    "CONTROLLER_ELECT_MASTER": ("SUCCESS", "CONTROLLER_ELECT_MASTER_FAILED"),
    "CONTROLLER_REGISTER_BROKER": ("SUCCESS",),
    "CONTROLLER_GET_REPLICA_INFO": CODES["CONTROLLER_GET_REPLICA_INFO"],
    "CONTROLLER_GET_SYNC_STATE_DATA": ("SUCCESS",),
    "CLEAN_BROKER_DATA": CODES["CLEAN_BROKER_DATA"],
    "CONTROLLER_GET_NEXT_BROKER_ID": ("REQUEST_CODE_NOT_SUPPORTED",),
    "CONTROLLER_APPLY_BROKER_ID": ("REQUEST_CODE_NOT_SUPPORTED",),
    "BROKER_HEARTBEAT": ("SUCCESS",),
}


def _of(release: str) -> list[Case]:
    wanted = parse_release(release)
    assert wanted is not None
    return [case for case in CASES if case.releases.holds("apache", wanted)]


def _kind(step: CaseStep) -> str:
    if isinstance(step.action, Sent):
        return step.action.command or "a code without a name"
    return type(step.action).__name__


def _answer(outcome: AllowedOutcome) -> str:
    parts = (outcome.codes, outcome.command, outcome.header, outcome.body, outcome.closed, outcome.silence)
    return repr(parts)


def _counted() -> Iterator[tuple[str, str, str]]:
    """(clause, kind of step, expected answer) of every judged step; what is only given does not count."""
    for case in CASES:
        for step in case.steps:
            for outcome in step.expect:
                yield case.clause, _kind(step), _answer(outcome)


def _deciding() -> Iterator[tuple[str, str, str]]:
    """The same of each case's last judged step alone."""
    for case in CASES:
        last = [step for step in case.steps if step.expect][-1]
        yield case.clause, _kind(last), repr([_answer(outcome) for outcome in last.expect])


def test_the_cases_are_many_however_they_are_counted() -> None:
    assert len(set(_counted())) >= 2 * DISTINCT_MINIMUM
    assert len(set(_deciding())) >= DISTINCT_MINIMUM


@pytest.mark.parametrize(
    ("release", "codes"), [(SECOND, CODES), (FIRST, CODES_OF_THE_FIRST_GENERATION)], ids=[SECOND, FIRST]
)
def test_every_code_of_every_request_is_demanded_somewhere(
    release: str, codes: dict[str, tuple[str, ...]]
) -> None:
    demanded = {
        (_kind(step), code)
        for case in _of(release)
        for step in case.steps
        for outcome in step.expect
        for code in outcome.codes
    }
    assert {(command, code) for command, each in codes.items() for code in each} - demanded == set()


def test_every_bug_that_a_controller_can_show_has_a_case() -> None:
    assert {bug for case in CASES for bug in case.bugs} == SHOWN


def test_what_asks_for_a_bug_is_said_to_and_is_not_the_proposals_word() -> None:
    demanding = [case for case in CASES if case.demands]
    assert {bug for case in demanding for bug in case.demands} == DEMANDED
    assert {case.basis for case in demanding} == {"apache"}


def test_the_bugs_that_releases_have_are_expected_failures_with_their_mark() -> None:
    expected = load_expected(EXPECTED, FAMILY, "controller", {case.id for case in CASES})["apache"]
    by_id = {case.id: case for case in CASES}
    assert {entry.bug for entry in expected if entry.bug} == FOUND | MENDED
    for entry in expected:
        assert not entry.bug or entry.bug in by_id[entry.case].bugs, entry


def test_each_expected_failure_is_of_a_release_that_its_case_is_played_for() -> None:
    expected = load_expected(EXPECTED, FAMILY, "controller", {case.id for case in CASES})["apache"]
    by_id = {case.id: case for case in CASES}
    for entry in expected:
        newest = entry.releases.last or (9, 9, 9)
        assert by_id[entry.case].releases.holds("apache", entry.releases.first or newest), entry


def test_what_rests_on_observed_behaviour_was_observed_in_some_release() -> None:
    """A demand that releases fail to this day is a proposal's, or ours."""
    expected = load_expected(EXPECTED, FAMILY, "controller", {case.id for case in CASES})["apache"]
    observed = {case.id for case in CASES if case.basis == "apache"}
    assert [each.case for each in expected if each.releases.last is None and each.case in observed] == []


def test_frames_are_cut_joined_and_broken_in_every_way() -> None:
    raw = [
        step.action
        for case in CASES
        for step in case.steps
        if isinstance(step.action, Raw) and case.releases.first == (5, 0, 0)
    ]
    assert any(each.each for each in raw), "a request, byte by byte"
    assert any(each.keep is not None for each in raw), "half a frame"
    assert any(len(each.of) > 1 for each in raw), "several frames in one piece"
    assert {key for each in raw for key in each.patch} == {"total_length", "header_length", "serialize_type"}
    codes = {step.action.code for case in CASES for step in case.steps if isinstance(step.action, Sent)}
    assert 31999 in codes, "a code that nobody knows"


def test_a_demand_is_no_stricter_than_its_clause() -> None:
    """A recommendation is tried as one."""
    for case in CASES:
        clause = CLAUSES[case.clause]
        assert case.severity == "should" or clause.severity == "REQUIRED", case.id


def test_no_case_of_the_core_asks_what_only_administrators_ask() -> None:
    """A controller that serves brokers alone is judged by the whole core."""
    sent = (
        (case.id, step.action.command)
        for case in CASES
        if case.profile == "core"
        for step in (*case.prepared, *case.steps)
        if isinstance(step.action, Sent) and step.action.command
    )
    assert [each for each in sent if FAMILY.vocabulary.sender(each[1]) == ADMINISTRATOR] == []


def test_only_what_changes_the_whole_controller_is_played_alone() -> None:
    changing = {
        case.id
        for case in CASES
        for step in case.steps
        if isinstance(step.action, Sent) and step.action.command == "UPDATE_CONTROLLER_CONFIG"
    }
    assert {case.id for case in CASES if case.alone} == changing


def test_a_case_that_reads_state_back_has_looked_at_it_before_its_own_changes() -> None:
    """Where what is shown is wrong from the start, such a case does not blame its clause for it."""
    blind = {
        case.clause
        for case in CASES
        if "the_master_is_shown" not in case.given
        and set(case.given) & {"a_master", "a_silent_master", "two_in_sync", "three_in_sync"}
        and any(_reads_back(step) for step in case.steps)
    }
    assert blind == JUDGE_WHAT_IS_SHOWN


def _reads_back(step: CaseStep) -> bool:
    asks = isinstance(step.action, Sent) and step.action.command == "CONTROLLER_GET_REPLICA_INFO"
    return asks and any(each.header or each.body is not None for each in step.expect)
