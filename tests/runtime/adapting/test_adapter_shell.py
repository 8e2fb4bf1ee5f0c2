"""An adapter made of `serve`: what it answers, what it refuses, and that nothing outlives it."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from replispec.adapter.v1 import adapter_pb2 as wire
from replispec.adapter.v1 import messages
from replispec.adapter.v1.messages import EndpointPurpose, Role
from replispec.runtime.adapting.adapter_shell import CannotStartError, Ports, serve
from replispec.runtime.documents import official_seam
from replispec.runtime.documents.delimited import DocumentBuffer, delimited

LISTENS = """
import signal, socket, sys
open('data/kept', 'a').write('x')
if sys.argv[2] == 'stubborn': signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = socket.create_server(('127.0.0.1', int(sys.argv[1]))) if sys.argv[2] != 'deaf' else None
signal.pause()
"""
FAILS = "import sys; print('the disk\\nis full'); sys.exit(3)"


class _Programs:
    implementation, release, language = "test", "1", "python"
    roles: Mapping[int, Sequence[int]] = MappingProxyType({Role.CONTROLLER: (EndpointPurpose.REMOTING,)})
    distances: Mapping[int, int] = MappingProxyType({})

    def command(self, start: messages.Start, ports: Ports, folder: Path) -> Sequence[str]:
        assert folder.is_dir()
        how = start.settings.get("how", "")
        if how == "never":
            raise CannotStartError("not on this machine")
        program = FAILS if how == "fails" else LISTENS
        return [sys.executable, "-S", "-E", "-c", program, str(ports[EndpointPurpose.REMOTING]), how]


class _Runner:
    """The other end of the pipe, with the official runtime of protobuf."""

    def __init__(self) -> None:
        self.asked = 0
        self.code: list[int] = []
        self.errors = _Lines()
        source, self._to = os.pipe()
        self._from, sink = os.pipe()
        self._buffer = DocumentBuffer()
        self._waiting: list[Any] = []

        def run() -> None:
            self.code.append(serve(_Programs(), source, sink, self.errors))  # type: ignore[arg-type]
            os.close(sink)
            os.close(source)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def said(self) -> Any:
        while not self._waiting:
            data = os.read(self._from, 65536)
            assert data, "it says nothing more"
            for each in self._buffer.receive(data):
                self._waiting.append(official_seam.decode(wire.AdapterMessage, each, unknown_allowed=False))
        return self._waiting.pop(0)

    def ask(self, **request: Any) -> Any:
        self.asked += 1
        self.write(delimited(official_seam.encode(wire.RunnerMessage(request_id=self.asked, **request))))
        answer = self.said()
        assert answer.request_id == self.asked
        return getattr(answer, answer.WhichOneof("content"))

    def start(self, how: str = "", **more: Any) -> Any:
        fields = {"instance": "c", "role": wire.ROLE_CONTROLLER, "ready_within_ms": 20_000, **more}
        return self.ask(start=wire.Start(settings={"how": how}, **fields))

    def write(self, data: bytes) -> None:
        os.write(self._to, data)

    def leave(self) -> int:
        if self._to >= 0:
            os.close(self._to)
            self._to = -1
            self._thread.join()
            os.close(self._from)
        return self.code[0]


class _Lines:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


@pytest.fixture
def runner() -> Iterator[_Runner]:
    found = _Runner()
    yield found
    found.leave()


def refused(answer: Any) -> tuple[str, str]:
    return wire.RefusalReason.Name(answer.reason).removeprefix("REFUSAL_REASON_"), answer.remark


def test_it_describes_itself(runner: _Runner) -> None:
    described = runner.ask(describe=wire.Describe(protocol=1))
    assert (described.protocol, described.implementation, list(described.roles)) == (1, "test", [1])
    assert refused(runner.ask(describe=wire.Describe(protocol=9)))[0] == "UNSUPPORTED"


def test_an_instance_lives_and_dies_and_keeps_its_port_and_its_folder(runner: _Runner) -> None:
    ready = runner.start()
    port = ready.listening[0].port
    kept = Path(ready.storage_folder, "kept")
    runner.ask(suspend=wire.Suspend(instance="c"))
    runner.ask(resume=wire.Resume(instance="c"))
    runner.ask(crash=wire.Crash(instance="c"))
    again = runner.start()
    assert (again.listening[0].port, kept.read_text()) == (port, "xx")
    assert refused(runner.ask(reset=wire.Reset(instance="c"))) == ("INVALID", "c runs: stop it first")
    runner.ask(stop=wire.Stop(instance="c", within_ms=20_000))
    runner.ask(reset=wire.Reset(instance="c"))
    assert not kept.exists()


def test_what_is_asked_of_nobody_is_refused(runner: _Runner) -> None:
    for request in ("crash", "stop", "suspend", "resume", "reset"):
        kind = getattr(wire, request.capitalize())
        assert refused(runner.ask(**{request: kind(instance="b")}))[0] == "UNKNOWN_INSTANCE"


@pytest.mark.parametrize(
    ("how", "more", "reason", "remark"),
    [
        ("", {"instance": "../x"}, "INVALID", "an instance is named by letters, digits, - and _"),
        ("", {"role": wire.ROLE_BROKER}, "UNSUPPORTED", "no BROKER can be started"),
        ("", {"role": 14}, "UNSUPPORTED", "no role 14 can be started"),
        ("never", {}, "FAILED", "not on this machine"),
        ("fails", {}, "FAILED", "it ended with 3: the disk is full"),
        ("deaf", {"ready_within_ms": 1}, "TIMED_OUT", "not ready within 0.001 s"),
    ],
)
def test_a_start_that_cannot_be_is_refused(
    runner: _Runner, how: str, more: dict[str, Any], reason: str, remark: str
) -> None:
    assert refused(runner.start(how, **more)) == (reason, remark)


def test_a_stubborn_instance_is_killed_and_the_stop_timed_out(runner: _Runner) -> None:
    runner.start("stubborn")
    assert refused(runner.ask(stop=wire.Stop(instance="c", within_ms=1)))[0] == "TIMED_OUT"
    assert refused(runner.ask(crash=wire.Crash(instance="c")))[0] == "UNKNOWN_INSTANCE"


def test_an_end_that_nobody_asked_for_is_told_once(runner: _Runner) -> None:
    os.kill(runner.start().process_id, signal.SIGKILL)
    told = runner.said()
    assert (told.request_id, told.exited.instance, told.exited.signal) == (0, "c", signal.SIGKILL)
    assert runner.start().instance == "c"


def test_a_start_at_once_does_not_wait_for_ports(runner: _Runner) -> None:
    assert runner.start("deaf", at_once=True).listening[0].port > 0


def test_a_request_that_it_does_not_know_is_refused(runner: _Runner) -> None:
    runner.write(bytes.fromhex("0508016a 01 00".replace(" ", "")))  # field 13, of a later version
    assert refused(runner.said().refusal)[0] == "UNSUPPORTED"


def test_the_end_of_its_input_ends_what_it_started(runner: _Runner) -> None:
    ready = runner.start()
    assert runner.leave() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(ready.process_id, 0)
    assert not Path(ready.storage_folder).exists()


def test_a_runner_that_breaks_the_protocol_is_told_so(runner: _Runner) -> None:
    runner.write(b"\xff" * 6)
    runner._thread.join()
    assert runner.code == [1]
    assert runner.errors.text.startswith("adapter: the runner broke the protocol: ")
