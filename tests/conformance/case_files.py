"""Case files that tests write, the answers that small subjects give, and the command in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from replispec.cli.main import main
from replispec.conformance.cases import load
from replispec.conformance.expectations import Expected
from replispec.conformance.model import Case, CaseError
from replispec.conformance.results import CaseResult, RunResult
from replispec.conformance.run import ResultListener, RunPlan, run_on_trio
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from replispec.wire.rocketmq.streams import REMOTING

HOST = "127.0.0.1"
CLOSED_ADDRESS = "127.0.0.1:1"
"""An address where nobody listens."""
READ_BYTES = 65536
IDLE_S = 0.02
"""Real seconds without work before the clock jumps."""
RELEASE = (5, 4, 0)
METADATA = "{send: {command: CONTROLLER_GET_METADATA_INFO}, expect: [{code: SUCCESS}]}"
HEAD = "kind: controller\ntopic: trial\nprofile: core\ncases:\n"

Said = Callable[[Command], Sequence[bytes] | None]
"""What a subject says to a command: pieces of bytes, or None to end the connection."""


def a_case(*steps: str, number: int = 1, clause: str = "RIP44-ALTER-1", more: str = "") -> str:
    """The lines of one case with these steps; the first step stands in line 10 of a file of its own."""
    lines = [
        f"  - id: controller/trial/{clause}/{number}",
        "    requirement: Something holds.",
        "    severity: must",
        "    basis: apache",
        f"    {more or 'bugs: []'}",
        "    steps:",
        *(f"      - {step}" for step in steps),
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path, text: str, name: str = "trial.yaml", kind: str = "controller") -> Path:
    """A folder of cases with this file in it."""
    (folder / kind).mkdir(parents=True, exist_ok=True)
    (folder / kind / name).write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, *steps: str, more: str = "") -> Case:
    """The one case with these steps."""
    return load("controller", write(folder, HEAD + a_case(*steps, more=more)))[0]


def refused(folder: Path, text: str, name: str = "trial.yaml") -> str:
    """Why a file is refused: FILE:LINE: reason."""
    with pytest.raises(CaseError) as fault:
        load("controller", write(folder, text, name))
    return str(fault.value)


def replispec(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["replispec", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    assert isinstance(left.value.code, int)
    return left.value.code


def answer(
    request: Command,
    code: int = ResponseCode.SUCCESS,
    header: Mapping[str, str | None] | None = None,
    body: bytes = b"",
    *,
    opaque: int | None = None,
    flag: int = RemotingFlag.RESPONSE,
) -> bytes:
    """The bytes of an answer to a request."""
    number = request.header.opaque if opaque is None else opaque
    return Command(
        RemotingHeader(
            code=code, opaque=number, flag=flag, ext_fields=dict(header) if header is not None else None
        ),
        body,
    ).encode()


def always(
    code: int = ResponseCode.SUCCESS, header: Mapping[str, str | None] | None = None, body: bytes = b""
) -> Said:
    """A subject that answers everything the same."""
    return lambda request: [answer(request, code, header, body)]


class Listening:
    """A subject that says what a function tells it to, and remembers whom it heard and when."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self.received: list[Command] = []
        self.connections = 0
        self.at_once = 0
        self._open = 0

    async def serve(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; the status is the address."""
        listener = (await trio.open_tcp_listeners(0, host=HOST))[0]
        task_status.started(f"{HOST}:{listener.socket.getsockname()[1]}")
        await trio.serve_listeners(self._connection, [listener])

    async def _connection(self, stream: trio.SocketStream) -> None:
        frames = FrameBuffer(REMOTING)
        self.connections += 1
        self._open += 1
        self.at_once = max(self.at_once, self._open)
        try:
            while data := await stream.receive_some(READ_BYTES):
                for frame in frames.receive(data):
                    command = decode_command(frame)
                    self.received.append(command)
                    said = self._said(command)
                    if said is None:
                        return
                    for piece in said:
                        await stream.send_all(piece)
        except trio.BrokenResourceError:
            return
        finally:
            self._open -= 1


def a_plan(target: str, changes: Mapping[str, object]) -> RunPlan:
    """A plan for a controller at an address; the changes name fields of a plan."""
    values: dict[str, object] = {
        "kind": "controller",
        "addresses": {"target": target, "broker": CLOSED_ADDRESS},
        "implementation": "",
        "release": RELEASE,
        "seed": "a seed",
        "suite": "tests",
        "began": "",
        "now_ms": 1_700_000_000_000,
        **changes,
    }
    return RunPlan(**values)  # type: ignore[arg-type]  # the fields of a plan, some changed by a test


def judged(
    cases: Sequence[Case],
    said: Said,
    *,
    expected: Sequence[Expected] = (),
    on_result: ResultListener | None = None,
    subject: Listening | None = None,
    plan: Mapping[str, object] | None = None,
) -> RunResult:
    """What a run says of a subject; waits take no time."""

    async def run() -> RunResult:
        async with trio.open_nursery() as nursery:
            target = await nursery.start((subject or Listening(said)).serve)
            result = await run_on_trio(a_plan(target, plan or {}), cases, expected, on_result)
            nursery.cancel_scope.cancel()
        return result

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=IDLE_S))


def played(folder: Path, said: Said, *steps: str, more: str = "") -> CaseResult:
    """What one case with these steps says of a subject."""
    return judged([read(folder, *steps, more=more)], said).results[0]


def after_the_probe(said: Said) -> Said:
    """A subject that answers the first question, which asks whether it is there, and then does this."""
    asked: list[Command] = []

    def say(request: Command) -> Sequence[bytes] | None:
        asked.append(request)
        return [answer(request)] if len(asked) == 1 else said(request)

    return say
