"""`replispec conformance` in this process: its exit codes, what it shows and what it writes."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import trio

from replispec.conformance.model import Case
from replispec.conformance.results import RunResult, from_json
from replispec.conformance.run import RunPlan, run_suite
from replispec.wire.rocketmq.codes import ResponseCode
from tests.conformance.case_files import (
    CLOSED_ADDRESS,
    HEAD,
    METADATA,
    Listening,
    a_case,
    a_plan,
    answer,
    read,
    replispec,
    write,
)

FAILS = "{send: {code: 9}, expect: [{code: SUCCESS}]}"
LISTED = """\
implementations:
  mine:
    - case: controller/trial/RIP44-ALTER-1/{number}
      releases: {releases}
      symptom: '{symptom}'
      why: Not done yet.
"""
SAYS = {9: ResponseCode.SYSTEM_ERROR, 10: ResponseCode.REQUEST_CODE_NOT_SUPPORTED}
SYMPTOM = "step 1: code SYSTEM_ERROR instead of SUCCESS"


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """A subject that refuses code 9, does not know code 10, and does all else; in a thread of its own."""
    found: list[str] = []
    ready, scope = threading.Event(), trio.CancelScope()

    def say(request: object) -> list[bytes]:
        code = request.header.code  # type: ignore[attr-defined]  # a command
        return [answer(request, SAYS.get(code, ResponseCode.SUCCESS), {"controllerLeaderId": "\x1b[2J"})]  # type: ignore[arg-type]

    async def serve() -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                found.append(await nursery.start(Listening(say).serve))
                tokens.append(trio.lowlevel.current_trio_token())
                ready.set()

    tokens: list[trio.lowlevel.TrioToken] = []
    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    ready.wait()
    yield found[0]
    tokens[0].run_sync_soon(scope.cancel)
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three cases: one that passes, one that fails, one that is a recommendation and fails."""
    should = a_case(FAILS, number=3).replace("must", "should")
    return write(tmp_path, HEAD + a_case(METADATA) + a_case(FAILS, number=2) + should)


def _run(monkeypatch: pytest.MonkeyPatch, target: str, folder: Path, *more: str | Path) -> int:
    options = ("--kind", "controller", "--target", target, "--cases", folder, "--implementation", "mine")
    return replispec(monkeypatch, "conformance", "run", *options, *more)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--case", "*/1"), 0),
        (("--case", "*/2"), 1),
        (("--case", "*/3"), 0),
        (("--case", "*/3", "--strict"), 1),
        (("--case", "*/4"), 2),
        (("--profile", "ha"), 2),
        (("--release", "4.9.0"), 2),
        (("--release", "new"), 2),
        (("--release", "5.\N{SUPERSCRIPT TWO}"), 2),
    ],
)
def test_the_exit_code_says_whether_all_is_as_it_should_be(
    monkeypatch: pytest.MonkeyPatch, target: str, folder: Path, options: tuple[str, ...], code: int
) -> None:
    assert _run(monkeypatch, target, folder, *options) == code


@pytest.mark.parametrize(
    ("entry", "code", "told"),
    [
        ({"number": 2, "releases": "5.1.1..", "symptom": SYMPTOM}, 0, "0 findings, 1 expected failures"),
        ({"number": 2, "releases": "5.1.1..", "symptom": "step 1"}, 1, "(another symptom)"),
        ({"number": 2, "releases": "..5.1.1", "symptom": SYMPTOM}, 1, "(failure)"),
        ({"number": 1, "releases": "5.1.1..", "symptom": SYMPTOM}, 1, "(unexpected pass)"),
        ({"number": 7, "releases": "5.1.1..", "symptom": SYMPTOM}, 2, "expected_failures.yaml:3: no case"),
    ],
)
def test_a_list_of_known_failures_decides_what_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    folder: Path,
    entry: dict[str, object],
    code: int,
    told: str,
) -> None:
    (folder / "expected_failures.yaml").write_text(LISTED.format(**entry), encoding="utf-8")
    assert _run(monkeypatch, target, folder) == code
    shown = capsys.readouterr()
    assert told in shown.out + shown.err


def test_a_stale_entry_ends_the_run_with_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    write(folder, HEAD + a_case(METADATA, more="releases: 5.5.0..") + a_case(METADATA, number=2))
    entry = LISTED.format(number=1, releases="5.1.1..", symptom=SYMPTOM)
    (folder / "expected_failures.yaml").write_text(entry, encoding="utf-8")
    assert _run(monkeypatch, target, folder, "--release", "5.4.0") == 1
    assert "expected_failures.yaml:3: the entry is stale" in capsys.readouterr().out


def test_a_finding_is_shown_with_its_reason_its_line_and_how_to_look_closer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    assert _run(monkeypatch, target, folder, "--seed", "s") == 1
    shown = capsys.readouterr().out
    assert "fail        controller/trial/RIP44-ALTER-1/2  (failure)\n    Something holds.\n" in shown
    assert "step 1 (controller/trial.yaml:18): code SYSTEM_ERROR instead of SUCCESS" in shown
    assert ": 1 pass, 2 fail; " in shown
    assert "seed s\n1 findings, 0 expected failures, 1 failed recommendations\n" in shown
    assert "--case 'controller/trial/RIP44-ALTER-1/2' --trace" in shown


def test_a_trace_obeys_no_control_that_a_subject_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    wrong = METADATA.replace("SUCCESS", "SUCCESS, header: {controllerLeaderId: n1}")
    write(folder, HEAD + a_case(wrong))
    assert _run(monkeypatch, target, folder, "--trace") == 1
    shown = capsys.readouterr().out
    assert "CONTROLLER_GET_METADATA_INFO" in shown
    assert "\\u001b[2J instead of n1" in shown
    assert "\x1b" not in shown


def test_every_report_is_written_and_the_compliance_page_is_made_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    json, junit, html = (folder / name for name in ("r.json", "r.xml", "r.html"))
    reports = ("--json", json, "--junit", junit, "--html", html)
    assert _run(monkeypatch, target, folder, *reports, "--jobs", "2", "--patience", "0.5") == 1
    run = from_json(json.read_bytes(), "r.json")
    assert [each.verdict.value for each in run.results] == ["pass", "fail", "fail"]
    assert len(list(ET.fromstring(junit.read_bytes()).iter("failure"))) == 1
    assert "controller/trial/RIP44-ALTER-1/2" in html.read_text(encoding="utf-8")
    capsys.readouterr()
    assert replispec(monkeypatch, "conformance", "compliance", json) == 0
    assert "controller/trial/RIP44-ALTER-1/2" in capsys.readouterr().out
    (folder / "r.json").write_text("{}", encoding="utf-8")
    assert replispec(monkeypatch, "conformance", "compliance", json) == 2


def test_a_subject_that_knows_no_command_is_loudly_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    write(folder, HEAD + a_case("{send: {code: 10}, expect: [{code: SUCCESS}]}"))
    html = folder / "r.html"
    assert _run(monkeypatch, target, folder, "--html", html) == 2
    assert "NOTHING WAS JUDGED" in capsys.readouterr().out
    assert "Nothing judged" in html.read_text(encoding="utf-8")
    assert _run(monkeypatch, target, write(folder, HEAD + a_case(METADATA))) == 0
    assert "NOTHING WAS JUDGED" not in capsys.readouterr().out


def test_without_a_subject_nothing_is_judged_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert _run(monkeypatch, CLOSED_ADDRESS, folder) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"Error: nobody listens at {CLOSED_ADDRESS}: ")


@pytest.mark.parametrize("address", ["here", "127.0.0.1", ":80", "127.0.0.1:0", "127.0.0.1:99999", "h:x"])
def test_an_address_is_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, address: str
) -> None:
    assert _run(monkeypatch, address, folder) == 2
    assert capsys.readouterr().err == f"Error: {address!r} is not HOST:PORT\n"


def test_cases_and_clauses_are_listed_and_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert replispec(monkeypatch, "conformance", "list", "--cases", folder, "--kind", "controller") == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "controller/trial/RIP44-ALTER-1/1  must, apache, 5.1.1..: Something holds."
    )
    explain = ("conformance", "explain", "--cases", folder)
    assert replispec(monkeypatch, *explain, "RIP44-ALTER-1") == 0
    assert replispec(monkeypatch, *explain, "rip44-alter") == 2
    assert "is it one of: RIP44-ALTER-" in capsys.readouterr().err
    assert replispec(monkeypatch, *explain, "nonsense") == 2


def test_a_port_is_free_again_after_a_run(monkeypatch: pytest.MonkeyPatch, target: str, folder: Path) -> None:
    listens = "{listen: there, over: there}"
    write(folder, HEAD + a_case(METADATA, listens, "{send: {code: 1, header: {a: $there}}}"))
    json = folder / "r.json"
    assert _run(monkeypatch, target, folder, "--json", json) == 0
    sent = next(each for each in from_json(json.read_bytes(), "").results[0].trace if "'a'" in each.says)
    port = int(sent.says.rpartition(":")[2].strip(" '}"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))


@pytest.mark.parametrize("report", ["--json", "--junit", "--html"])
def test_a_report_that_has_no_place_is_refused_before_anything_is_played(
    report: str, monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, CLOSED_ADDRESS, folder, report, folder / "nowhere" / "found") == 2
    assert f"there is no folder {folder / 'nowhere'}" in capsys.readouterr().err


def test_an_interrupt_keeps_what_was_judged_before(target: str, tmp_path: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    case = read(tmp_path, "{send: {code: 11}, expect: [{code: SUCCESS}]}")
    result = run_suite(a_plan(target, {}), [case], (), interrupted)
    assert result.cut_short
    assert [each.id for each in result.results] == [case.id]


def test_an_interrupted_command_tells_what_it_knows_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    def interrupted(plan: RunPlan, cases: Sequence[Case], *_: object) -> RunResult:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        return run_suite(plan, cases[:1], (), stop)

    monkeypatch.setattr("replispec.conformance.run.run_suite", interrupted)
    written = tmp_path / "found.json"
    assert _run(monkeypatch, target, folder, "--json", written) == 130
    assert "INTERRUPTED" in capsys.readouterr().out
    assert len(from_json(written.read_bytes(), "").results) == 1


@pytest.fixture(params=["heard", "ignored"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[object]:
    """Ctrl-C as a terminal has it, and ignored, as in the background of a shell without job control."""
    handler = signal.default_int_handler if request.param == "heard" else signal.SIG_IGN
    before = signal.signal(signal.SIGINT, handler)
    yield handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_a_signal_ends_tells_in_one_line_and_keeps_what_was_judged(
    number: int,
    ctrl_c: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    """It comes while cases are played, wherever the loop is then; several may come."""

    def ended(plan: RunPlan, cases: Sequence[Case], _: object, tell: Callable[..., None]) -> RunResult:
        def end(*judged: object) -> None:
            tell(*judged)
            os.kill(os.getpid(), number)

        return run_suite(plan, cases, (), end)

    monkeypatch.setattr("replispec.conformance.run.run_suite", ended)
    before = signal.getsignal(number)
    report = tmp_path / "found.xml"
    # One case after the other: what was told of the first is heard before the last one ends.
    assert _run(monkeypatch, target, folder, "--junit", report, "--jobs", "1") == 128 + number
    assert (signal.getsignal(number), signal.getsignal(signal.SIGINT)) == (before, ctrl_c)
    shown = capsys.readouterr()
    assert "INTERRUPTED" in shown.out
    assert "Traceback" not in shown.err
    assert 1 <= len(list(ET.fromstring(report.read_bytes()).iter("testcase"))) <= 3


def test_junit_is_written_where_nobody_could_be_judged(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
) -> None:
    report = tmp_path / "found.xml"
    assert _run(monkeypatch, CLOSED_ADDRESS, folder, "--junit", report) == 2
    (error,) = ET.fromstring(report.read_bytes()).iter("error")
    assert CLOSED_ADDRESS in (error.get("message") or "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (("--kind", "controller", "--add-cases", "/nonexistent"), "Directory '/nonexistent' does not exist"),
        (("--kind", "controller", "--bogus"), "No such option"),
        (("--bogus", "--kind", "controller"), "No such option"),
        (("--kind", "nobody"), "'nobody' is not one of"),
        (("--jobs", "many", "--kind", "controller"), "'many' is not a valid integer"),
        (("--target", CLOSED_ADDRESS), "Missing option '--kind'"),
        (("--kind", "controller", "--html", "/nonexistent/f"), "there is no folder /nonexistent"),
    ],
)
@pytest.mark.parametrize("where", ["first", "last", "joined"])
def test_junit_is_written_for_a_wrong_command_line(
    line: tuple[str, ...], why: str, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "found.xml"
    told = (f"--junit={report}",) if where == "joined" else ("--junit", str(report))
    words = (*line, *told) if where == "last" else (*told, *line)
    assert replispec(monkeypatch, "conformance", "run", *words) == 2
    (error,) = ET.fromstring(report.read_bytes()).iter("error")
    assert why in (error.get("message") or "")


@pytest.mark.parametrize("report", ["/nonexistent/found.xml", "/"])
def test_a_wrong_command_line_whose_junit_has_no_place_is_refused_in_one_line(
    report: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replispec(monkeypatch, "conformance", "run", "--bogus", "--junit", report) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_without_a_terminal_every_tenth_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    assert _run(monkeypatch, target, folder) == 1
    assert f"replispec: controller at {target}: 3 of 3\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--release", "9.9"), "there are 5.0.0, "),
        (("--implementation", "apahce"), "no implementation 'apahce' is listed: there are mine"),
        (("--basis", "rumour"), "cases of kind controller rest on proposal, apache, ours, not on 'rumour'"),
        (("--case", "trial"), "all of that topic are '*/trial/*'"),
    ],
)
def test_what_nobody_knows_is_refused_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    folder: Path,
    options: tuple[str, ...],
    told: str,
) -> None:
    (folder / "expected_failures.yaml").write_text("implementations: {mine: []}\n", encoding="utf-8")
    assert _run(monkeypatch, target, folder, *options) == 2
    assert told in capsys.readouterr().err


def test_only_what_rests_on_the_asked_basis_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    write(folder, HEAD + a_case(FAILS) + a_case(METADATA, number=2).replace("    basis: apache\n", ""))
    assert _run(monkeypatch, target, folder, "--basis", "proposal") == 0
    assert "findings by what they rest on: proposal 0 of 1\n" in capsys.readouterr().out
    assert _run(monkeypatch, target, folder, "--basis", "apache") == 1
    assert "findings by what they rest on: apache 1 of 1\n" in capsys.readouterr().out


def test_own_cases_are_played_beside_the_others_and_use_their_givens(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    folder: Path,
    tmp_path: Path,
) -> None:
    write(folder, f"given:\n  asked:\n    says: Asked.\n    steps: [{METADATA}]\n", "given.yaml")
    own = write(tmp_path / "own", HEAD + a_case(METADATA, number=9, more="given: [asked]"))
    assert _run(monkeypatch, target, folder, "--add-cases", own, "--case", "*/9") == 0
    assert ": 1 pass; " in capsys.readouterr().out


def test_surroundings_are_looked_at_once_and_what_they_lack_is_one_cause(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str, folder: Path
) -> None:
    lacking = f"given:\n  alone:\n    says: It is alone.\n    first: true\n    steps: [{FAILS}]\n"
    write(folder, lacking, "given.yaml")
    needing = (a_case(METADATA, number=at, more="given: [alone]") for at in (2, 3))
    write(folder, HEAD + a_case(METADATA) + "".join(needing))
    assert _run(monkeypatch, target, folder, "--trace") == 1
    shown = capsys.readouterr().out
    assert "before the first case: this does not hold: It is alone. could not be prepared: given" in shown
    assert "2 findings of 1 cause" in shown
    assert shown.count("> 9") == 0, "no case of it is played"


def test_own_cases_may_come_with_a_list_of_known_failures(
    monkeypatch: pytest.MonkeyPatch, target: str, folder: Path, tmp_path: Path
) -> None:
    own = write(tmp_path / "own", HEAD + a_case(FAILS, number=9))
    assert _run(monkeypatch, target, folder, "--add-cases", own, "--case", "*/9") == 1
    listed = LISTED.format(number=9, releases="5.1.1..", symptom=SYMPTOM)
    (own / "expected_failures.yaml").write_text(listed, encoding="utf-8")
    assert _run(monkeypatch, target, folder, "--add-cases", own, "--case", "*/9") == 0
