"""The command behind every target's entry script.

    run fetch                                get what the target consists of
    run kinds                                print what it can be, one kind a line
    run start DIR [controller|ha-master]     start it, print one line of JSON when it serves
    run crash DIR                            kill the subject as a crash does
    run stop DIR                             end everything that was started in DIR
    run reset DIR                            stop, forget all data, start again

`start` after `crash` or `stop` goes on with the data that is there, on the same ports. Exit code 0: done;
1: it failed; 2: this is no command; 3: something is not installed. Failures are one line on standard error.
"""

from __future__ import annotations

import fcntl
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from targets.lib.apache import Apache
from targets.lib.errors import TargetError, UsageError
from targets.lib.folder import Folder, State
from targets.lib.ours import Ours
from targets.lib.processes import kill, terminate
from targets.lib.running import Running
from targets.lib.rust import RustController

Target = Apache | Ours | RustController
IMPLEMENTATIONS: Mapping[str, Callable[[str], Target]] = {
    Apache.implementation: Apache,
    Ours.implementation: Ours,
    RustController.implementation: RustController,
}
DEFAULT_KIND = "controller"
USAGE = "usage: run fetch | run kinds | run start DIR [KIND] | run crash|stop|reset DIR"


def main(arguments: Sequence[str]) -> int:
    """Carry out one command for `IMPLEMENTATION RELEASE COMMAND ...` and return its exit code."""
    implementation, release, *command = arguments
    try:
        _carry_out(IMPLEMENTATIONS[implementation](release), command)
    except (TargetError, OSError) as error:
        sys.stderr.write(f"{implementation}-{release}: {' '.join(str(error).split())}\n")
        return error.exit_code if isinstance(error, TargetError) else TargetError.exit_code
    return 0


def _carry_out(target: Target, command: Sequence[str]) -> None:
    match command:
        case ["fetch"]:
            sys.stdout.write(f"{target.fetch()}\n")
        case ["kinds"]:
            sys.stdout.writelines(f"{kind}\n" for kind in target.subjects)
        case ["start", folder]:
            _start(target, Folder(Path(folder)), None)
        case ["start", folder, kind] if kind in target.subjects:
            _start(target, Folder(Path(folder)), kind)
        case ["start", _, kind]:
            raise UsageError(f"{kind} is none of its kinds: {', '.join(target.subjects)}")
        case ["crash" | "stop" | "reset" as action, folder]:
            _act(target, Folder(Path(folder)), action)
        case _:
            raise UsageError(USAGE)


def _act(target: Target, folder: Folder, action: str) -> None:
    state = folder.load()
    if state is None:
        raise TargetError(f"nothing was ever started in {folder.path}")
    _check_same(target, state)
    with _alone(folder):
        match action:
            case "crash":
                subject = state.living(state.subject)
                if subject is None:
                    raise TargetError(f"no {state.subject} runs in {folder.path}")
                kill([subject])
            case "stop":
                terminate(reversed(state.processes))
            case _:
                terminate(reversed(state.processes))
                folder.wipe()
    if action == "reset":
        _start(target, folder, state.kind)


def _start(target: Target, folder: Folder, kind: str | None) -> None:
    """Start and print the ready line; when that fails, end whatever had been started."""
    state = folder.load()
    if state is None:
        kind = kind or DEFAULT_KIND
        state = State(target.implementation, target.release, kind, target.subjects[kind])
    _check_same(target, state)
    if kind not in (None, state.kind):
        raise TargetError(f"{folder.path} holds a {state.kind}: stop it and choose another folder")
    if state.living(state.subject):
        raise TargetError(f"a {state.subject} already runs in {folder.path}")
    folder.save(state)
    running = Running(folder, state)
    with _alone(folder), _orderly_interrupts():
        try:
            ready = target.start(running)
        except BaseException:
            terminate(reversed(state.processes))
            raise
    line = {
        "kind": state.kind,
        "implementation": target.implementation,
        "release": target.release,
        "speaks": target.speaks,
        **ready,
        "pids": running.pids(),
    }
    sys.stdout.write(json.dumps(line) + "\n")


def _check_same(target: Target, state: State) -> None:
    if (state.implementation, state.release) != (target.implementation, target.release):
        raise TargetError(f"the folder holds {state.implementation}-{state.release}")


@contextmanager
def _alone(folder: Folder) -> Iterator[None]:
    """Keep other commands away from the folder. Raises TargetError when one is at work there."""
    with (folder.path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TargetError(f"another command is at work in {folder.path}") from None
        yield


@contextmanager
def _orderly_interrupts() -> Iterator[None]:
    """Whatever ends this command while it starts something ends it through an exception."""

    def leave(number: int, _: object) -> None:
        raise TargetError(f"interrupted by {signal.Signals(number).name}")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
