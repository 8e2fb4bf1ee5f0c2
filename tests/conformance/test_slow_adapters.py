"""What an adapter takes is nobody's time: cases end as they would with one that starts at once, however many
wait for it; what was asked is answered, whoever is gone by then."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.conformance import run as running_suite
from replispec.conformance.adapter_requests import AdapterFault, AdapterRefused
from replispec.conformance.adapters import Adapter, Starting
from replispec.conformance.case_clock import CaseClock
from replispec.conformance.planning import make_plan
from replispec.conformance.results import CaseVerdict, RunResult
from tests.cli.command import command
from tests.conformance.case_files import IDLE_S
from tests.conformance.fake_adapter import HANG, TELL, described, said, scripted
from tests.conformance.subjects.piped import StartLasts, piped
from tests.conformance.subjects.registering import Wrong
from tests.conformance.test_played_kinds import KIND, cases

SLOW_S = 45.0
QUEUEING = (
    "register/BID-NEXT-1/1",
    "register/BID-APPLY-1/1",
    "crash/BID-STATE-2/1",
    "crash/BID-STATE-3/1",
    "crash/BID-STATE-4/2",
    "crash/BID-STATE-4/3",
    "crash/BID-STATE-1/1",
    "crash/BID-KEY-1/1",
)
Verdicts = dict[str, tuple[CaseVerdict, str]]


def on_a_clock_that_jumps(task: Callable[[], Awaitable[object]]) -> None:
    trio.run(task, clock=trio.testing.MockClock(autojump_threshold=IDLE_S))


def at_once(_number: int) -> float:
    return 0.0


def slowly(_number: int) -> float:
    return SLOW_S


def run_with(
    lasts: StartLasts,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Wrong | None = None,
    instead: Mapping[int, bytes] | None = None,
) -> RunResult:
    """Eight cases that want the one adapter at the same time."""

    @asynccontextmanager
    async def running(_command: Sequence[str], _patience: float) -> AsyncIterator[Adapter]:
        async with piped(lasts, wrong, instead) as (adapter, _):
            yield adapter

    monkeypatch.setattr(running_suite, "running", running)
    plan = make_plan(KIND, {}, adapter=["toy"], seed="queue", jobs=len(QUEUEING))
    found: list[RunResult] = []

    async def run() -> None:
        chosen = [cases()[name] for name in QUEUEING]
        found.append(await running_suite.run_on_trio(plan, chosen, [], None))

    on_a_clock_that_jumps(run)
    return found[0]


def verdicts(result: RunResult) -> Verdicts:
    return {each.id.removeprefix(f"{KIND}/"): (each.verdict, each.symptom) for each in result.results}


@pytest.mark.parametrize(
    "wrong", [Wrong(), Wrong(forgets=True), Wrong(applies_for_more=1), Wrong(garbage=True)]
)
def test_whoever_queues_for_a_slow_adapter_is_judged_as_with_a_quick_one(
    wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = run_with(at_once, monkeypatch, wrong)
    slow = run_with(slowly, monkeypatch, wrong)
    assert slow.adapter_fault == quick.adapter_fault == ""
    assert verdicts(slow) == verdicts(quick)
    assert len(verdicts(slow)) == len(QUEUEING)
    assert all(verdict is CaseVerdict.PASS for verdict, _ in verdicts(quick).values()) is (wrong == Wrong())


@pytest.mark.parametrize("longest_s", [76.0, 100_000.0])
def test_a_start_beyond_the_allowance_is_the_adapters_and_what_was_judged_before_is_kept(
    longest_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_with(lambda number: longest_s if number == 6 else SLOW_S, monkeypatch)
    assert result.adapter_fault == "the adapter toy: it does not answer `start` within 75 s"
    assert_kept(result)


def assert_kept(result: RunResult) -> None:
    """What ended before the fault passed, as it would have; nothing else is said of the subject."""
    kept = verdicts(result)
    assert 0 < len(kept) < len(QUEUEING)
    assert kept == dict.fromkeys(kept, (CaseVerdict.PASS, ""))
    assert not result.cut_short


@pytest.mark.parametrize(
    ("instead", "blamed"),
    [
        (bytes.fromhex(said(9, done=wire.Done())) * 1_000, "answers request 9, which waits for no answer"),
        (b"\xff" * 6, "what it writes is no message"),
    ],
    ids=["floods", "no message"],
)
def test_a_slow_adapter_that_breaks_its_protocol_takes_no_verdict_with_it(
    instead: bytes, blamed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_with(slowly, monkeypatch, instead={6: instead})
    assert blamed in result.adapter_fault
    assert_kept(result)


def test_a_start_that_takes_all_of_the_allowance_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_with(lambda _: 74.0, monkeypatch)
    assert (result.adapter_fault, {each.verdict for each in result.results}) == ("", {CaseVerdict.PASS})


def starting(name: str, *, begins: bool = True) -> Starting:
    return Starting(name, "broker", at_once=True, begins=begins)


async def gone_after(seconds: float, adapter: Adapter, name: str) -> None:
    """Somebody asks for a start and is cancelled."""
    with trio.move_on_after(seconds):
        await adapter.start(starting(name))


def test_a_question_that_was_sent_is_answered_though_its_asker_is_gone() -> None:
    async def run() -> None:
        async with piped(slowly) as (adapter, asked):
            await gone_after(10, adapter, "torn")
            assert adapter.lives("torn"), "whoever cleans up ends it"
            with pytest.raises(AdapterRefused):  # in step: this is the answer to this question
                await adapter.reset("nobody")
            await adapter.crash("torn")
            assert not adapter.lives("torn")
        assert [kind for kind, _ in asked] == ["describe", "start", "reset", "crash"]

    on_a_clock_that_jumps(run)


def test_a_question_that_nobody_waits_for_any_more_is_not_sent() -> None:
    async def run() -> None:
        async with piped(slowly) as (adapter, asked):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(adapter.start, starting("a"))
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(gone_after, 1, adapter, "b")
            await adapter.start(starting("c"))
            assert not adapter.lives("b")
        assert asked == [("describe", ""), ("start", "a"), ("start", "c")]

    on_a_clock_that_jumps(run)


def test_a_fault_found_after_its_asker_is_gone_still_ends_the_run() -> None:
    async def run() -> None:
        async with piped(lambda _: 100_000.0) as (adapter, _):
            await gone_after(1, adapter, "torn")
            await trio.sleep_forever()

    with pytest.raises(AdapterFault, match="does not answer `start` within 75 s"):
        on_a_clock_that_jumps(run)


def test_whoever_has_something_running_goes_before_those_who_begin() -> None:
    async def run() -> None:
        async with piped(slowly) as (adapter, asked), trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(adapter.start, starting(name))
                await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(adapter.start, starting("a2", begins=False))
        assert [name for _, name in asked] == ["", "a", "a2", "b", "c"]

    on_a_clock_that_jumps(run)


def test_a_clock_that_stands_still_moves_no_limit_and_no_time() -> None:
    times: list[float] = []

    async def run() -> None:
        clock = CaseClock()
        began_s, clock_began_s = trio.current_time(), clock.now_s()
        try:
            with clock.limit(10):
                await trio.sleep(4)
                with clock.stands_still():
                    await trio.sleep(1_000)
                times.append(clock.now_s() - clock_began_s)
                await trio.sleep(100)
        except trio.TooSlowError:
            times.append(trio.current_time() - began_s)

    on_a_clock_that_jumps(run)
    assert times == [pytest.approx(4), pytest.approx(1_010)]


def test_an_interrupt_in_the_middle_of_a_start_is_quick_and_tells_what_was_judged(tmp_path: Path) -> None:
    """Had the start been waited for, it would have been the adapter's fault (3)."""
    pipe, report = tmp_path / "pipe", tmp_path / "results.json"
    os.mkfifo(pipe)
    first = described(roles=[wire.ROLE_BROKER], abilities=[wire.ABILITY_START_AT_ONCE])
    refused = said(2, refusal=wire.Refusal(reason=wire.REFUSAL_REASON_UNSUPPORTED))
    adapter = shlex.join(scripted(first, refused, f"{TELL}{pipe}", HANG))
    chosen = [part for case in ("*/BID-NEXT-1/1", "*/BID-APPLY-1/1") for part in ("--case", case)]
    arguments = ["--kind", KIND, "--adapter", adapter, "--jobs", "1", "--json", str(report), *chosen]
    with subprocess.Popen(command("conformance", "run", *arguments), stdout=subprocess.PIPE) as process:
        assert pipe.read_text() == "asked"
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    assert [each["verdict"] for each in json.loads(report.read_text())["results"]] == ["unsupported"]
