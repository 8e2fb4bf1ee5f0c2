"""Runs of the suite against small subjects: which cases are played, how, and what comes of each."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from replispec.conformance.cases import load
from replispec.conformance.model import Case
from replispec.conformance.results import CaseResult, CaseVerdict, Standing
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from tests.conformance.case_files import (
    HEAD,
    METADATA,
    Listening,
    Said,
    a_case,
    after_the_probe,
    always,
    answer,
    judged,
    played,
    read,
    refused,
    write,
)

UNSUPPORTED = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
REFUSED = ResponseCode.SYSTEM_ERROR
INFO = "send: {command: CONTROLLER_GET_METADATA_INFO}"
LEADER = {"controllerLeaderId": "n1"}


def outcome_of(folder: Path, said: Said, *steps: str) -> tuple[CaseVerdict, str]:
    """The verdict and the symptom of one case with these steps."""
    result = played(folder, after_the_probe(said), *steps)
    return result.verdict, result.symptom


# What a subject may answer


def test_a_subject_that_answers_as_the_case_allows_passes(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, always(), METADATA) == (CaseVerdict.PASS, "")


def test_the_second_outcome_counts_as_much_as_the_first(tmp_path: Path) -> None:
    step = f"{{{INFO}, expect: [{{closed: true}}, {{code: [CONTROLLER_NOT_LEADER, SUCCESS]}}]}}"
    assert outcome_of(tmp_path, always(), step)[0] is CaseVerdict.PASS


@pytest.mark.parametrize(
    ("said", "step", "symptom"),
    [
        (always(REFUSED), METADATA, "code SYSTEM_ERROR instead of SUCCESS"),
        (always(31999), METADATA, "code 31999 instead of SUCCESS"),
        (
            always(header={"controllerLeaderId": "n2"}),
            f"{{{INFO}, expect: [{{closed: true}}, {{code: SUCCESS, header: {{controllerLeaderId: n1}}}}]}}",
            "header.controllerLeaderId n2 instead of n1",
        ),
        (
            always(body=b'{"a":[1]}'),
            "{send: {code: 7}, expect: [{code: SUCCESS, body: {a: !has [2]}}]}",
            "body.a [1] instead of has [2]",
        ),
        (lambda _: [], METADATA, "no answer"),
        (lambda _: None, METADATA, "the end of the connection instead of SUCCESS"),
        (always(), f"{{{INFO}, expect: [{{closed: true}}]}}", "code SUCCESS instead of its end"),
        (lambda _: [], f"{{{INFO}, expect: [{{closed: true}}]}}", "no answer"),
        (always(), f"{{{INFO}, expect: [{{silence: true}}]}}", "code SUCCESS instead of silence"),
        (
            lambda _: None,
            f"{{{INFO}, expect: [{{silence: true}}]}}",
            "the end of the connection instead of silence",
        ),
        (lambda r: [answer(r, 1008, flag=0, opaque=5)], METADATA, "request 1008 instead of SUCCESS"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_fails_with_the_nearest_difference(
    tmp_path: Path, said: Said, step: str, symptom: str
) -> None:
    verdict, found = outcome_of(tmp_path, said, step)
    assert verdict is CaseVerdict.FAIL
    assert found.removeprefix("step 1: ").replace("NOTIFY_BROKER_ROLE_CHANGED", "1008") == symptom


@pytest.mark.parametrize(
    ("said", "outcome"),
    [(lambda _: None, "closed"), (lambda _: [], "silence")],
)
def test_an_end_and_a_silence_may_be_what_is_wanted(tmp_path: Path, said: Said, outcome: str) -> None:
    assert outcome_of(tmp_path, said, f"{{{INFO}, expect: [{{{outcome}: true}}]}}")[0] is CaseVerdict.PASS


BREACHES: dict[str, tuple[Callable[[Command], Sequence[bytes]], str]] = {
    "no frame": (lambda _: [b"GET / HTTP/1.1\r\n\r\n"], "no frame: "),
    "no JSON": (lambda _: [bytes((0, 0, 0, 8, 0, 0, 0, 4)) + b"{]{]"], "undecodable: "),
    "unasked": (lambda r: [answer(r, opaque=r.header.opaque + 1)], "an answer to no request"),
    "without flag": (lambda r: [answer(r, flag=RemotingFlag.REQUEST)], "an answer without the flag"),
}


@pytest.mark.parametrize(("said", "symptom"), BREACHES.values(), ids=BREACHES)
@pytest.mark.parametrize("more", ["", ", again: {every: 0.5, up_to: 20}", ", passing: true"])
def test_a_broken_protocol_fails_whatever_is_expected_and_however_often_it_is_tried(
    tmp_path: Path, said: Said, symptom: str, more: str
) -> None:
    step = f"{{{INFO}, expect: [{{closed: true}}, {{silence: true}}, {{code: SUCCESS}}]{more}}}"
    verdict, found = outcome_of(tmp_path, said, step)
    assert verdict is CaseVerdict.FAIL
    assert found.startswith(f"step 1: {symptom}")


@pytest.mark.parametrize("last", [(), ("close: main",), ("reset: main",)])
def test_a_second_answer_is_seen_though_no_step_looks_at_it(tmp_path: Path, last: tuple[str, ...]) -> None:
    settled = ("{wait: 1, note: for a stray answer}", *last)
    verdict, found = outcome_of(tmp_path, lambda r: [answer(r) * 2], METADATA, *settled)
    assert verdict is CaseVerdict.FAIL
    assert found.endswith(": a second answer")


def test_an_answer_to_a_oneway_request_breaks_the_protocol(tmp_path: Path) -> None:
    step = "{send: {command: CONTROLLER_GET_METADATA_INFO, oneway: true}, expect: [{silence: true}]}"
    assert outcome_of(tmp_path, always(), step) == (
        CaseVerdict.FAIL,
        "step 1: an answer to a one-way request",
    )


def test_an_undecodable_header_of_an_answer_breaks_the_protocol(tmp_path: Path) -> None:
    step = (
        "{send: {command: CONTROLLER_GET_REPLICA_INFO, header: {brokerName: x}}, expect: [{code: SUCCESS}]}"
    )
    found = outcome_of(tmp_path, always(header={"masterEpoch": "many"}), step)
    assert found[0] is CaseVerdict.FAIL
    assert found[1].startswith("step 1: undecodable: ")


@pytest.mark.parametrize(
    "step",
    [
        METADATA,
        f"{{{INFO}, expect: [{{closed: true}}], passing: true}}",
        f"{{{INFO}, expect: [{{closed: true}}, {{silence: true}}]}}",
    ],
)
def test_a_subject_that_floods_a_connection_never_passes(tmp_path: Path, step: str) -> None:
    def flood(request: Command) -> list[bytes]:
        notice = answer(request, 1008, flag=RemotingFlag.REQUEST, opaque=7)
        return [answer(request), notice * 600]

    assert outcome_of(tmp_path, flood, step, "{wait: 1, note: for the flood}")[0] is CaseVerdict.FAIL


# Verdicts beside pass and fail


def test_a_command_that_the_subject_does_not_know_is_unsupported_and_no_finding(tmp_path: Path) -> None:
    def said(request: Command) -> list[bytes]:
        return [answer(request, UNSUPPORTED if request.header.code == 9 else ResponseCode.SUCCESS)]

    run = judged([read(tmp_path, "{send: {code: 9}, expect: [{code: SUCCESS}]}")], said)
    assert run.results[0].verdict is CaseVerdict.UNSUPPORTED
    assert run.findings(strict=True) == []


def test_a_case_may_expect_that_a_command_is_not_known(tmp_path: Path) -> None:
    step = f"{{{INFO}, expect: [{{code: REQUEST_CODE_NOT_SUPPORTED}}]}}"
    assert outcome_of(tmp_path, always(UNSUPPORTED), step)[0] is CaseVerdict.PASS


GIVEN = "given:\n  ready:\n    says: It is ready.\n    steps: [{}]\n"


def _prepared(folder: Path, said: Said, optional: str = "") -> CaseResult:
    write(folder, GIVEN.format("{send: {code: 9}, expect: [{code: SUCCESS}]}") + optional, "given.yaml")
    return judged([read(folder, METADATA, more="given: [ready]")], said).results[0]


def _not_nine(request: Command) -> list[bytes]:
    return [answer(request, REFUSED if request.header.code == 9 else ResponseCode.SUCCESS)]


def test_a_case_whose_given_cannot_be_made_is_skipped_and_the_run_is_not_clean(tmp_path: Path) -> None:
    result = _prepared(tmp_path, _not_nine)
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert result.symptom == "given: code SYSTEM_ERROR instead of SUCCESS"
    assert result.reason == (
        "could not be prepared: given (controller/given.yaml:4): code SYSTEM_ERROR instead of SUCCESS"
    )


def test_a_given_that_not_every_subject_has_only_leaves_the_case_out(tmp_path: Path) -> None:
    result = _prepared(tmp_path, _not_nine, "    optional: true\n")
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.AS_IT_SHOULD)
    assert result.reason.startswith("not applicable: ")


def test_a_subject_that_does_not_answer_does_not_say_that_a_case_is_not_for_it(tmp_path: Path) -> None:
    result = _prepared(
        tmp_path, lambda r: None if r.header.code == 9 else [answer(r)], "    optional: true\n"
    )
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert result.reason.startswith("could not be prepared: ")


NINE = "{send: {code: 9}, prepares: true, expect: [{code: SUCCESS}]}"


def test_a_step_that_prepares_says_nothing_about_the_clause(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, always(), METADATA, NINE, METADATA) == (CaseVerdict.PASS, "")
    result = played(tmp_path, _not_nine, METADATA, NINE, METADATA)
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert result.symptom == "step 2: code SYSTEM_ERROR instead of SUCCESS"
    assert result.reason.startswith("could not be prepared: step 2 (")


def test_a_case_that_only_prepares_is_refused(tmp_path: Path) -> None:
    assert "so it cannot fail" in refused(tmp_path, HEAD + a_case(NINE))


def test_the_given_comes_before_the_steps(tmp_path: Path) -> None:
    write(tmp_path, GIVEN.format("{send: {code: 9}, expect: [{code: SUCCESS}]}"), "given.yaml")
    subject = Listening(always())
    judged([read(tmp_path, METADATA, more="given: [ready]")], always(), subject=subject)
    assert [command.header.code for command in subject.received] == [1005, 9, 1005]


SAVING = f"{{{INFO}, expect: [{{code: SUCCESS, save: {{x: header.controllerLeaderId}}}}]}}"
COUNTING = "{send: {code: 9, header: {a: $x + 1}}, expect: [{code: SUCCESS}]}"


def test_counting_with_what_is_no_number_is_a_fault_of_the_suite(tmp_path: Path) -> None:
    result = played(tmp_path, always(), "{send: {code: 9, header: {a: $target + 1}}}", METADATA)
    assert (result.verdict, result.standing) == (CaseVerdict.ERROR, Standing.NOT_JUDGED)


@pytest.mark.parametrize(
    ("said", "symptom"),
    [
        (always(), "step 1: no header.controllerLeaderId to go on with"),
        (always(header=LEADER), "step 2: 'n1' is no number to count with"),
    ],
)
def test_a_case_that_cannot_go_on_with_what_the_subject_told_is_not_judged(
    tmp_path: Path, said: Said, symptom: str
) -> None:
    result = played(tmp_path, said, SAVING, COUNTING)
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert result.symptom == symptom
    assert result.reason.startswith("could not go on: step ")


def test_an_answer_that_lacks_what_a_case_needs_does_not_hide_what_is_not_allowed(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, always(REFUSED), SAVING) == (
        CaseVerdict.FAIL,
        "step 1: code SYSTEM_ERROR instead of SUCCESS",
    )


def test_a_repeated_step_waits_for_an_answer_that_a_case_can_go_on_with(tmp_path: Path) -> None:
    asked: list[Command] = []

    def say(request: Command) -> list[bytes]:
        asked.append(request)
        return [answer(request, header=LEADER if len(asked) > 3 else None)]

    assert outcome_of(tmp_path, say, SAVING[:-1] + ", again: {every: 0.5, up_to: 10}}") == (
        CaseVerdict.PASS,
        "",
    )
    assert len(asked) == 4


def test_a_subject_that_is_gone_is_not_judged(tmp_path: Path) -> None:
    step = "{open: {to: broker}, over: b}"
    case = read(tmp_path, METADATA, step)
    result = judged([case], always()).results[0]
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)


# Steps that take their time


def test_a_repeated_step_passes_as_soon_as_an_outcome_fits(tmp_path: Path) -> None:
    asked: list[Command] = []

    def say(request: Command) -> list[bytes]:
        asked.append(request)
        return [answer(request, ResponseCode.SUCCESS if len(asked) > 3 else REFUSED)]

    step = METADATA[:-1] + ", again: {every: 0.5, up_to: 10}}"
    assert outcome_of(tmp_path, say, step) == (CaseVerdict.PASS, "")
    assert len(asked) == 4


def test_a_repeated_step_ends_with_its_last_difference(tmp_path: Path) -> None:
    step = METADATA[:-1] + ", again: {every: 0.5, up_to: 2}}"
    subject = Listening(after_the_probe(always(REFUSED)))
    result = judged([read(tmp_path, step)], always(), subject=subject).results[0]
    assert result.symptom == "step 1: code SYSTEM_ERROR instead of SUCCESS"
    assert len(subject.received) == 1 + 5


@pytest.mark.parametrize(("passing", "verdict"), [("true", CaseVerdict.PASS), ("false", CaseVerdict.FAIL)])
def test_other_messages_are_passed_over_only_where_the_step_says_so(
    tmp_path: Path, passing: str, verdict: CaseVerdict
) -> None:
    def say(request: Command) -> list[bytes]:
        return [answer(request, 1008, flag=RemotingFlag.REQUEST, opaque=5), answer(request)]

    assert outcome_of(tmp_path, say, METADATA[:-1] + f", passing: {passing}}}")[0] is verdict


def test_answers_to_other_requests_are_kept_for_the_steps_that_name_them(tmp_path: Path) -> None:
    waiting: list[Command] = []

    def say(request: Command) -> list[bytes]:
        waiting.append(request)
        both = [answer(each, each.header.opaque) for each in reversed(waiting)]
        return both if len(waiting) == 2 else []

    steps = (
        "{bytes: {of: [{code: 7, opaque: 1}, {code: 7, opaque: 2}]}}",
        "{expect: [{code: SYSTEM_ERROR, opaque: 1}]}",
        "{expect: [{code: SYSTEM_BUSY, opaque: 2}]}",
    )
    assert outcome_of(tmp_path, say, *steps) == (CaseVerdict.PASS, "")
    for crossed in (
        "{expect: [{code: SYSTEM_ERROR, opaque: 2}]}",
        "{expect: [{code: SYSTEM_BUSY, opaque: 1}, {code: SYSTEM_ERROR, opaque: 2}]}",
    ):
        waiting.clear()
        assert outcome_of(tmp_path, say, steps[0], crossed)[0] is CaseVerdict.FAIL


def test_what_is_saved_is_sent_and_compared_later(tmp_path: Path) -> None:
    def say(request: Command) -> list[bytes]:
        return [answer(request, header={"a": "8", **(request.header.ext_fields or {})})]

    steps = (
        "{send: {code: 9, header: {b: x}}, expect: [{code: SUCCESS, save: {n: header.a}}]}",
        "{send: {code: 9, header: {c: $n + 1}}, expect: [{code: SUCCESS, header: {c: 9, a: $n}}]}",
        "{send: {code: 9}, expect: [{code: SUCCESS, header: {a: $n - 1}}]}",
    )
    assert outcome_of(tmp_path, say, *steps) == (CaseVerdict.FAIL, "step 3: header.a $n instead of 7")


# Which cases are played


def _cases(folder: Path, text: str) -> tuple[Case, ...]:
    return load("controller", write(folder, HEAD + text))


def test_patterns_choose_cases(tmp_path: Path) -> None:
    cases = _cases(tmp_path, "".join(a_case(METADATA, number=n) for n in (1, 2, 3)))
    run = judged(cases, always(), plan={"patterns": ("*/2", "*/RIP44-ALTER-?/3")})
    assert [each.id[-1] for each in run.results] == ["2", "3"]


@pytest.mark.parametrize(
    ("more", "changes", "reason"),
    [
        ("releases: 5.2.0..", {"release": (5, 1, 4)}, "release 5.1.4: the case is for 5.2.0 to now"),
        ("releases: ..5.2.0", {}, "release 5.4.0: the case is for the first to 5.2.0"),
        ("profile: admin", {"profiles": ("core",)}, "profile admin was not asked for"),
        ("needs: [nameserver]", {}, "needs the address of: nameserver"),
    ],
)
def test_a_case_for_another_subject_is_skipped_with_its_reason(
    tmp_path: Path, more: str, changes: dict[str, object], reason: str
) -> None:
    subject = Listening(always())
    run = judged([read(tmp_path, METADATA, more=more)], always(), subject=subject, plan=changes)
    assert (run.results[0].verdict, run.results[0].reason) == (CaseVerdict.SKIPPED, reason)
    assert run.findings(strict=True) == []
    assert len(subject.received) == 1


def test_all_profiles_of_a_kind_are_played_unless_some_are_named(tmp_path: Path) -> None:
    run = judged([read(tmp_path, METADATA, more="profile: admin")], always())
    assert run.results[0].verdict is CaseVerdict.PASS


def test_a_failed_recommendation_is_a_finding_only_when_the_run_is_strict(tmp_path: Path) -> None:
    text = a_case(METADATA).replace("must", "should")
    run = judged(_cases(tmp_path, text), after_the_probe(always(REFUSED)))
    assert run.results[0].standing is Standing.WARNING
    assert run.findings(strict=False) == []
    assert run.findings(strict=True) == run.results


SENDS = "{send: {code: 9, header: {a: $set, b: $address1, c: $check1, d: $now, e: $other_set}}}"


def _names(folder: Path, seed: str) -> tuple[str, ...]:
    subject = Listening(always())
    cases = _cases(folder, "".join(a_case(METADATA, SENDS, number=n) for n in (1, 2)))
    judged(cases, always(), subject=subject, plan={"seed": seed, "jobs": 1})
    return tuple(str(each.header.ext_fields) for each in subject.received if each.header.code == 9)


def test_the_same_seed_gives_the_same_names_and_no_case_has_those_of_another(tmp_path: Path) -> None:
    first, again, other = (_names(tmp_path, seed) for seed in ("one", "one", "two"))
    assert sorted(first) == sorted(again)
    assert len({*first, *other}) == 4


@pytest.mark.parametrize(("jobs", "at_once"), [(1, 1), (3, 3)])
def test_no_more_cases_are_played_at_a_time_than_jobs_allow(tmp_path: Path, jobs: int, at_once: int) -> None:
    wait = "{wait: 1, note: so that cases meet}"
    cases = _cases(tmp_path, "".join(a_case(METADATA, wait, number=n) for n in range(1, 6)))
    subject = Listening(always())
    judged(cases, always(), subject=subject, plan={"jobs": jobs})
    assert subject.at_once == at_once
    assert subject.connections == 1 + 5


def test_a_case_that_must_be_alone_meets_no_other(tmp_path: Path) -> None:
    wait = "{wait: 1, note: so that cases meet}"
    cases = _cases(tmp_path, "".join(a_case(METADATA, wait, number=n, more="alone: true") for n in (1, 2, 3)))
    subject = Listening(always())
    assert [each.verdict for each in judged(cases, always(), subject=subject).results] == [
        CaseVerdict.PASS
    ] * 3
    assert subject.at_once == 1


def test_results_stand_in_the_order_of_the_cases_and_each_is_told_once(tmp_path: Path) -> None:
    mores = ("alone: true", "bugs: []", "releases: ..5.0.0", "bugs: []")
    cases = _cases(tmp_path, "".join(a_case(METADATA, number=n, more=m) for n, m in enumerate(mores, 1)))
    seen: list[tuple[str, int, int]] = []
    run = judged(cases, always(), on_result=lambda case, done, total: seen.append((case.id, done, total)))
    assert [each.id for each in run.results] == [case.id for case in cases]
    assert [counts[1:] for counts in seen] == [(n, 4) for n in (1, 2, 3, 4)]
    assert {name for name, _, _ in seen} == {case.id for case in cases}


def test_patience_gives_a_slow_subject_its_time(tmp_path: Path) -> None:
    case = read(tmp_path, METADATA)
    quick = judged([case], after_the_probe(lambda _: []))
    slow = judged([case], after_the_probe(lambda _: []), plan={"patience": 4.0})
    assert slow.results[0].took_s > 3 * quick.results[0].took_s


def test_a_result_holds_the_trace_of_what_went_out_and_came_in(tmp_path: Path) -> None:
    trace = played(tmp_path, always(), METADATA).trace
    assert [each.way for each in trace if each.data] == [">", "<"]
    assert [each.says.split()[0] for each in trace if each.says] == [
        "CONTROLLER_GET_METADATA_INFO",
        "SUCCESS",
    ]
    assert dataclasses.asdict(trace[0])["on"] == "main"


@pytest.mark.parametrize(
    ("command", "verdict"),
    [("GET_CONTROLLER_CONFIG", CaseVerdict.UNSUPPORTED), ("CONTROLLER_GET_REPLICA_INFO", CaseVerdict.FAIL)],
)
def test_who_permits_nobody_lacks_what_administrators_ask_and_fails_what_brokers_ask(
    tmp_path: Path, command: str, verdict: CaseVerdict
) -> None:
    def said(request: Command) -> list[bytes]:
        known = request.header.code == RequestCode.CONTROLLER_GET_METADATA_INFO
        return [answer(request, ResponseCode.SUCCESS if known else ResponseCode.NO_PERMISSION)]

    step = f"{{send: {{command: {command}}}, expect: [{{code: SUCCESS}}]}}"
    assert judged([read(tmp_path, step)], said).results[0].verdict is verdict


def test_an_outcome_that_is_allowed_once_is_not_allowed_twice(tmp_path: Path) -> None:
    once = "{send: {code: 11}, expect: [{code: SUCCESS, once: granted}, {code: SYSTEM_ERROR}]}"
    assert outcome_of(tmp_path, always(ResponseCode.SUCCESS), once)[0] is CaseVerdict.PASS
    verdict, symptom = outcome_of(tmp_path, always(ResponseCode.SUCCESS), once, once)
    assert (verdict, symptom) == (CaseVerdict.FAIL, "step 2: code SUCCESS instead of SYSTEM_ERROR")
