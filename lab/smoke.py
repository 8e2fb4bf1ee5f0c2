"""`make smoke`: proves in about a minute that a checkout works here, without a JDK.

Each step says what it did and how long it took; the first that fails ends the run, with what it printed.
`make test` proves everything, in about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from lab import families
from lab.cluster import Cluster, end_in_order
from lab.errors import LabError
from lab.subjects.ours import OwnRoles

ROOT = Path(__file__).parents[1]
# The cores and machines of every role, their logs, their calls: hundreds of tests, no socket, no JVM.
QUICK_TESTS = (
    "tests/controller",
    "tests/broker",
    "tests/learner",
    "tests/scenarios",
    "tests/runtime/log",
    "tests/runtime/membership",
    "tests/runtime/remoting",
)
FRESHNESS = "tests/compiler/test_freshness.py"
CAPTURE = ROOT / "spark_replay" / "captures" / "failover_lost.pcap"
# What a replay of it has to find (spark_replay/captures/README.md).
LOST, REPLAY_FOUND = 220, 1
STEP_S_MAXIMUM = 300
LINES_SHOWN = 20
INTERRUPTED = 130


def environment() -> str:
    """Which Python and which replispec run here."""
    release = metadata.version(OwnRoles.implementation)
    return f"Python {platform.python_version()}, replispec {release} of this checkout"


def command_line() -> str:
    """`replispec --help` names the commands."""
    said = _run("replispec.cli", "--help")
    missing = [name for name in ("replay", "decode", "conformance", "broker") if name not in said]
    _demand(not missing, f"replispec --help does not name {missing}")
    return "replispec --help"


def generated_code() -> str:
    """What is committed below generated/ is what spec/ compiles to."""
    _run("pytest", "-q", "-p", "no:cacheprovider", FRESHNESS)
    return "generated/ is what spec/ compiles to"


def quick_tests() -> str:
    """Some hundred tests of the cores pass."""
    said = _run("pytest", "-q", "-p", "no:cacheprovider", *QUICK_TESTS)
    return f"tests of the cores: {said.strip().splitlines()[-1].strip('= ')}"


def replay() -> str:
    """A real fail-over that lost messages is judged in one process, with the known result."""
    with tempfile.TemporaryDirectory(prefix="replispec-smoke-") as out:
        _run(
            *("replispec.cli", "replay", str(CAPTURE), "--engine", "local", "--quiet", "--out", out),
            code=REPLAY_FOUND,
        )
        summary = json.loads((Path(out) / "summary.json").read_text())
    lost = sum(each["acknowledged"] for each in summary["losses"])
    _demand(lost == LOST, f"{lost} lost messages found in {CAPTURE.name} instead of {LOST}")
    return f"{CAPTURE.name} replayed: {lost} acknowledged messages were lost, as is known of it"


def live_process() -> str:
    """A process of ours, started as anybody starts it, answers on a socket: one for each family."""
    said = []
    for name in families.names():
        with (
            tempfile.TemporaryDirectory(prefix="replispec-smoke-") as folder,
            Cluster(Path(folder)) as cluster,
        ):
            said.append(families.in_the_lab(name).smoke(cluster))
    return f"{'; '.join(said)}; ended"


STEPS: tuple[Callable[[], str], ...] = (
    environment,
    command_line,
    live_process,
    replay,
    generated_code,
    quick_tests,
)


def main() -> int:
    """Exit code 0 when every step passed, 1 after the first that did not."""
    argparse.ArgumentParser(prog="make smoke", description=__doc__).parse_args()
    began_s = time.monotonic()
    for step in STEPS:
        step_s = time.monotonic()
        try:
            done = step()
        except (LabError, OSError) as error:
            print(f"smoke: {step.__name__} failed: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("smoke: interrupted; all of its processes are ended", file=sys.stderr)
            return INTERRUPTED
        print(f"{time.monotonic() - step_s:6.1f} s  {done}", flush=True)
    print(f"{time.monotonic() - began_s:6.1f} s  all of it: this checkout works here")
    return 0


def _run(module: str, *arguments: str, code: int = 0) -> str:
    """What a module prints that ends with this exit code. Raises LabError when it ends with another."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=STEP_S_MAXIMUM,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{module} took more than {STEP_S_MAXIMUM} s") from error
    last = "\n".join(done.stdout.strip().splitlines()[-LINES_SHOWN:])
    _demand(done.returncode == code, f"{module} ended with exit code {done.returncode}\n{last}")
    return done.stdout


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LabError(otherwise)


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
