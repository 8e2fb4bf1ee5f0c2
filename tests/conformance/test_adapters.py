"""Adapters that lie, hang, flood or die are counted against the adapter, never against the run."""

import os
import re
import select
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.cli.main import command_line
from replispec.conformance import adapter_requests, adapters
from replispec.conformance.adapter_requests import AdapterFault, AdapterRefused
from replispec.conformance.adapters import Starting, running
from replispec.conformance.planning import PlanError, make_plan
from replispec.conformance.probe import NoSubject
from replispec.conformance.run import run_suite
from tests.conformance.fake_adapter import (
    CHILD,
    HANG,
    IGNORE_END,
    ORPHAN,
    described,
    ready,
    said,
    scripted,
)

NOBODY = 1  # a port at which nobody listens
DONE = wire.Done()
WANTED = "host 127.0.0.1 and a port from 1 to 65535 are wanted"


async def _started(command: Sequence[str], *, crash: bool = False) -> None:
    async with running(command, 1.0) as adapter:
        await adapter.start(Starting("controller", "controller"))
        if crash:
            await adapter.crash("controller")


def fault_of(command: Sequence[str], *, crash: bool = False) -> str:
    """The one line that an adapter is blamed with when it is asked to start a controller."""
    with pytest.raises(AdapterFault) as caught:
        trio.run(lambda: _started(command, crash=crash))
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


@pytest.mark.parametrize(
    ("words", "blamed"),
    [
        (["exit0"], "it ended in the middle of the run with status 0"),
        ([described(), "exit3"], "it ended in the middle of the run with status 3"),
        (["00"], "it writes an empty message: is its size a varint? last it wrote 00 (.)"),
        ([described(protocol=2)], "it speaks version 2 of the protocol, not 1"),
        ([said(1, done=DONE)], "it answers `describe` with done, not with description"),
        ([said(1)], "it answers `describe` with nothing, not with description"),
        ([said(7, done=DONE)], "it answers request 7, which waits for no answer"),
        ([described() * 2], "it answers request 1, which waits for no answer"),
        ([said(0, exited=wire.Exited(instance="b"))], "it says that 'b' ended, which does not run"),
        ([said(0, result=wire.Result(instance="b"))], "it says result without being asked"),
        (["ff" * 6], "what it writes is no message"),
        (["ffffff7f"], "what it writes is no message: 268435455 bytes or more in one document"),
        ([(b"listening on port 9878\n" * 9).hex()], "what it writes is no message"),
        ([described(), said(2, done=DONE)], "it answers `start` with done, not with ready"),
        ([described(), ready(NOBODY)], "it says that controller listens at 127.0.0.1:1: nobody does"),
        ([described(), ready(NOBODY, instance="x\ny")], "it says that 'x y' is ready, not controller"),
        ([described(), ready(0)], f"it says that controller listens at 127.0.0.1:0: {WANTED}"),
        (
            [described(), ready(NOBODY, host="10.0.0.1")],
            f"it says that controller listens at 10.0.0.1:1: {WANTED}",
        ),
        (
            [described(), said(2, ready=wire.Ready(instance="controller"))],
            "it does not say where controller listens for remoting",
        ),
        (
            [described(), said(2, refusal=wire.Refusal(reason=wire.REFUSAL_REASON_INVALID, remark="no"))],
            "it refuses `start` as INVALID: a request that is as the protocol has it: no",
        ),
        (
            [described(), said(2, refusal=wire.Refusal())],
            "it refuses `start` as UNSPECIFIED: it sets no reason",
        ),
        ([f"flood{said(9, done=DONE)}"], "it answers request 9, which waits for no answer"),
    ],
)
def test_what_the_protocol_does_not_allow_is_the_adapters_fault(words: list[str], blamed: str) -> None:
    assert fault_of(scripted(*words)).startswith(blamed)


def test_a_port_that_was_asked_for_is_the_port() -> None:
    """Who cannot choose is told one: members of a group know each other by it before any lives."""
    line = fault_of(scripted(described(abilities=[]), ready(NOBODY)))
    assert re.fullmatch(r"it says that controller listens at 127.0.0.1:1: port \d+ was asked for", line)


def test_a_port_that_a_case_reserved_is_the_port() -> None:
    async def start() -> None:
        async with running(scripted(described(), ready(NOBODY)), 1.0) as adapter:
            await adapter.start(Starting("controller", "controller", at_once=True, address="127.0.0.1:9"))

    with pytest.raises(AdapterFault, match=r"listens at 127.0.0.1:1: port 9 was asked for"):
        trio.run(start)


def test_one_purpose_has_one_place() -> None:
    places = [
        wire.Endpoint(purpose=wire.ENDPOINT_PURPOSE_REMOTING, host="127.0.0.1", port=port) for port in (1, 2)
    ]
    twice = said(2, ready=wire.Ready(instance="controller", listening=places))
    line = fault_of(scripted(described(), twice))
    assert line.endswith("listens at 127.0.0.1:2, too, and not only at 127.0.0.1:1: one place is wanted")


@pytest.mark.parametrize(
    ("reason", "lives"),
    [
        (wire.REFUSAL_REASON_FAILED, True),
        (wire.REFUSAL_REASON_UNSUPPORTED, True),
        (wire.REFUSAL_REASON_UNKNOWN_INSTANCE, False),
        (wire.REFUSAL_REASON_TIMED_OUT, False),
    ],
)
def test_what_could_not_be_ended_lives_and_may_be_said_to_have_ended_later(
    reason: int, *, lives: bool
) -> None:
    """The last two say that it is gone."""
    refusal = said(3, refusal=wire.Refusal(reason=reason))  # type: ignore[arg-type]  # a reason
    ended = said(0, exited=wire.Exited(instance="controller", status=1)) if lives else ""

    async def end() -> None:
        words = (described(), ready(NOBODY), refusal, said(4, done=DONE) + ended)
        async with running(scripted(*words), 1.0) as adapter:
            await adapter.start(Starting("controller", "controller", at_once=True))
            with pytest.raises(AdapterRefused):
                await adapter.stop("controller")
            assert adapter.lives("controller") is lives
            await adapter.suspend("controller")
            while lives and not adapter.how_ended("controller"):
                await trio.lowlevel.checkpoint()

    trio.run(end)


def test_an_adapter_that_cannot_be_started_is_at_fault(tmp_path: Path) -> None:
    assert fault_of([str(tmp_path / "none")]).endswith("none: No such file or directory")


@pytest.mark.parametrize("words", [[HANG], [described(), HANG]])
def test_an_adapter_that_hangs_is_at_fault(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_requests, "ANSWER_S", 0.3)
    monkeypatch.setattr(adapters, "START_S", 0.1)
    assert fault_of(scripted(*words)).startswith("it does not answer `")


def test_a_line_on_standard_output_is_shown_when_no_answer_is_understood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapter_requests, "ANSWER_S", 0.3)
    line = fault_of(scripted(b"adapter started\n".hex(), HANG))
    assert line.startswith(
        "it does not answer `describe` within 0.3 s: 16 bytes wait for the rest of a message;"
    )
    assert line.endswith("(adapter started.)")


def test_an_adapter_that_does_not_leave_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "LEAVE_S", 0.1)

    async def only_described() -> None:
        async with running(scripted(described(), IGNORE_END), 1.0):
            pass

    with pytest.raises(AdapterFault, match=r"did not end within 0.1 s of the end of its input"):
        trio.run(only_described)


def test_a_crash_that_leaves_the_port_open_is_a_lie() -> None:
    async def crash() -> None:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        port = listener.socket.getsockname()[1]
        async with listener, running(scripted(described(), ready(port), said(3, done=DONE)), 1.0) as adapter:
            await adapter.start(Starting("controller", "controller"))
            await adapter.crash("controller")

    with pytest.raises(AdapterFault, match=r"is gone, and .* still takes connections"):
        trio.run(crash)


@pytest.mark.parametrize("is_at_once", [True, False])
def test_an_end_that_leaves_the_port_open_is_a_lie(*, is_at_once: bool) -> None:
    """Told with the word that it is ready, and later."""

    async def told_of_the_end() -> None:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        port = listener.socket.getsockname()[1]
        ended = said(0, exited=wire.Exited(instance="controller", status=1))
        begun, done = ready(port), said(3, done=DONE)
        words = (begun + ended, done) if is_at_once else (begun, done + ended)
        async with listener, running(scripted(described(), *words, HANG), 1.0) as adapter:
            await adapter.start(Starting("controller", "controller"))
            await adapter.suspend("controller")
            await trio.sleep_forever()

    with pytest.raises(AdapterFault, match=r"ended by itself, and .* still takes connections"):
        trio.run(told_of_the_end)


def test_a_refusal_is_no_fault() -> None:
    refused = wire.Refusal(reason=wire.REFUSAL_REASON_UNSUPPORTED, remark="not\nyet")

    async def start() -> None:
        async with running(scripted(described(), said(2, refusal=refused)), 1.0) as adapter:
            with pytest.raises(AdapterRefused, match="UNSUPPORTED: not yet") as caught:
                await adapter.start(Starting("controller", "controller"))
            assert caught.value.unsupported

    trio.run(start)


def _ends(process: int) -> bool:
    """Whether a process ends, which is told by the kernel and not by a look now and then."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30)[0])
    finally:
        os.close(watched)


@pytest.mark.parametrize("child", [CHILD, ORPHAN])
@pytest.mark.parametrize("faulty", [True, False])
def test_nothing_of_an_adapter_outlives_it(child: str, *, faulty: bool) -> None:
    """Neither what is of its process group nor what made a session of its own."""
    found = []

    async def run() -> None:
        words = [child, described(), *(["ff" * 6] if faulty else [])]
        async with running(scripted(*words), 1.0) as adapter:
            while not adapter.said:
                await trio.lowlevel.checkpoint()
            found.append(int(adapter.said))
            if faulty:
                await adapter.start(Starting("controller", "controller"))

    if faulty:
        with pytest.raises(AdapterFault):
            trio.run(run)
    else:
        trio.run(run)
    assert _ends(found[0])


def test_its_standard_error_is_kept_to_its_end_only() -> None:
    said_much = "import sys; sys.stderr.write('x' * 1_000_000 + '\\nthe disk is full\\n'); sys.exit(1)"
    line = fault_of([sys.executable, "-S", "-E", "-c", said_much])
    assert line == "it ended in the middle of the run with status 1: the disk is full"


def test_what_a_dying_adapter_said_is_shown_line_by_line() -> None:
    dies = "import sys; sys.stderr.write('panic: no such map\\n\\nmain.go:40\\n'); sys.exit(2)"
    result = run_suite(make_plan("controller", {}, adapter=[sys.executable, "-S", "-E", "-c", dies]), [], [])
    assert result.notes == [
        "the adapter's standard error: panic: no such map",
        "the adapter's standard error: main.go:40",
    ]
    assert result.adapter_fault.endswith("with status 2: main.go:40")


def test_what_a_dying_adapter_has_started_is_ended_with_it(tmp_path: Path) -> None:
    """Its child holds a pipe open for as long as it lives."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    lives = (
        f"import time; held = open({str(pipe)!r}, 'wb', 0); held.write(b'x'); print(flush=True); "
        "time.sleep(999)"
    )
    dies = (
        "import subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-S', '-E', '-c', {lives!r}], stdout=-1, stderr=-3); "
        "child.stdout.readline(); sys.exit(2)"
    )
    try:
        assert "with status 2" in fault_of([sys.executable, "-S", "-E", "-c", dies])
        assert os.read(reading, 9) == b"x"
        assert select.select([reading], [], [], 10)[0]
        assert os.read(reading, 9) == b""
    finally:
        os.close(reading)


def test_the_command_tells_the_fault_in_one_line_and_ends_with_3(tmp_path: Path) -> None:
    words = shlex.join(scripted("ff" * 6))
    report = tmp_path / "junit.xml"
    arguments = ["--kind", "controller", "--adapter", words, "--junit", str(report)]
    done = CliRunner().invoke(command_line, ["conformance", "run", *arguments], standalone_mode=False)
    told = [line for line in done.output.splitlines() if line.startswith("THE ADAPTER FAILED")]
    assert len(told) == 1
    assert "what it writes is no message" in told[0]
    assert done.return_value == 3
    assert 'errors="1"' in report.read_text()


def test_a_kind_that_it_does_not_have_is_nobody_to_judge() -> None:
    plan = make_plan("controller", {}, adapter=scripted(described(roles=[wire.ROLE_BROKER])))
    with pytest.raises(NoSubject, match="the adapter brings no controller to life"):
        run_suite(plan, [], [])


@pytest.mark.parametrize("both", [True, False])
def test_a_subject_is_either_there_or_started(*, both: bool) -> None:
    with pytest.raises(
        PlanError, match=r"say where the subject listens .--target. or what brings it to life"
    ):
        make_plan("controller", {"target": "127.0.0.1:1"} if both else {}, adapter=["true"] if both else [])


def test_our_own_name_server_is_judged_through_our_adapter() -> None:
    command = shlex.join([sys.executable, "-P", "-m", "replispec.cli", "adapter"])
    arguments = [
        "--kind",
        "name-server",
        "--adapter",
        command,
        "--case",
        "*/cluster/*",
        "--case",
        "*/WIRE-ROUTE-6/5",
    ]
    done = CliRunner().invoke(command_line, ["conformance", "run", *arguments], standalone_mode=False)
    assert done.return_value == 0, done.output


def test_a_case_may_use_every_address_that_the_adapter_told() -> None:
    command = shlex.join([sys.executable, "-P", "-m", "replispec.cli", "adapter"])
    case = "ha-master/written/RIP44-HANDSHAKE-2/1"  # it needs the broker's
    arguments = ["--kind", "ha-master", "--adapter", command, "--case", case]
    done = CliRunner().invoke(command_line, ["conformance", "run", *arguments], standalone_mode=False)
    assert ": 1 pass;" in done.output
    assert done.return_value == 0
