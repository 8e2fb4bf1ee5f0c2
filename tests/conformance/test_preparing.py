"""What prepares a case is done as clients do it: who is busy is asked again, who hung up is called again."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from replispec.conformance.results import CaseResult, CaseVerdict, Standing
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import ResponseCode
from tests.conformance.case_files import METADATA, Listening, Said, answer, judged, played, read, write

NINE = 9
ASKED = "{send: {code: 9}, expect: [{code: SUCCESS}]"
GIVEN = f"given:\n  a_nine:\n    says: Nine was asked.\n    steps:\n      - {ASKED}}}\n"


def _first_times(count: int, said: Said) -> Said:
    """Nine meets this so often, and success from then on."""
    met: list[Command] = []

    def say(request: Command) -> Sequence[bytes] | None:
        if request.header.code == NINE:
            met.append(request)
        return said(request) if request.header.code == NINE and len(met) <= count else [answer(request)]

    return say


def _busy(request: Command) -> Sequence[bytes]:
    return [answer(request, ResponseCode.SYSTEM_BUSY)]


def _hung_up(_: Command) -> None:
    return None


def _given(folder: Path, said: Said) -> CaseResult:
    write(folder, GIVEN, "given.yaml")
    return played(folder, said, METADATA, more="given: [a_nine]")


def _marked(folder: Path, said: Said) -> CaseResult:
    return played(folder, said, f"{ASKED}, prepares: true}}", METADATA)


@pytest.mark.parametrize("prepared", [_given, _marked])
def test_what_prepares_is_sent_again_to_who_is_busy(
    prepared: Callable[[Path, Said], CaseResult], tmp_path: Path
) -> None:
    assert prepared(tmp_path, _first_times(3, _busy)).verdict is CaseVerdict.PASS


@pytest.mark.parametrize("prepared", [_given, _marked])
def test_who_is_busy_for_longer_than_the_step_has_leaves_the_case_unprepared(
    prepared: Callable[[Path, Said], CaseResult], tmp_path: Path
) -> None:
    result = prepared(tmp_path, _first_times(1000, _busy))
    assert (result.verdict, result.standing) == (CaseVerdict.SKIPPED, Standing.NOT_JUDGED)
    assert "code SYSTEM_BUSY instead of SUCCESS" in result.reason


def test_another_refusal_of_what_prepares_is_not_asked_again(tmp_path: Path) -> None:
    refused = _first_times(1, lambda request: [answer(request, ResponseCode.SYSTEM_ERROR)])
    assert _marked(tmp_path, refused).verdict is CaseVerdict.SKIPPED


def test_what_is_judged_is_asked_once(tmp_path: Path) -> None:
    result = played(tmp_path, _first_times(1, _busy), METADATA, f"{ASKED}}}")
    assert (result.verdict, result.symptom) == (
        CaseVerdict.FAIL,
        "step 2: code SYSTEM_BUSY instead of SUCCESS",
    )


AGAIN = f"{ASKED}, again: {{every: 0.5, up_to: 5}}"


def test_what_prepares_and_is_repeated_calls_again_who_hung_up(tmp_path: Path) -> None:
    subject = Listening(_first_times(2, _hung_up))
    case = read(tmp_path, f"{AGAIN}, prepares: true}}", METADATA)
    assert judged([case], _hung_up, subject=subject).results[0].verdict is CaseVerdict.PASS
    assert subject.connections > 2


def test_who_hangs_up_on_what_is_judged_is_not_called_again(tmp_path: Path) -> None:
    result = played(tmp_path, _first_times(2, _hung_up), METADATA, f"{AGAIN}}}")
    assert result.symptom == "step 2: the end of the connection instead of SUCCESS"
