"""`make interop`: play the scenarios, judge their traffic, and say what was measured."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab.capture import captured
from lab.cluster import Cluster
from lab.errors import LabError
from lab.interop.measured import Measured, judge
from lab.interop.scenarios import SCENARIOS, Stage
from lab.interop.tools import Tools
from lab.subjects.apache import Apache

RELEASE = "5.4.0"
INTERRUPTED = 130
REPLAY_OPTIONS = ("--all-ack-in-sync-state-set",)


def main() -> int:
    """Exit code 0: all as demanded; 1: not, with the first thing that was not; 3: something is missing."""
    arguments = arguments_of(sys.argv[1:])
    results: dict[str, object] = {}
    for name in arguments.scenarios:
        _, about = SCENARIOS[name]
        print(f"{name}: {about} (Apache RocketMQ {RELEASE})", flush=True)
        began_s = time.monotonic()
        try:
            results[name] = _play(name, arguments.out / name)
        except LabError as error:
            print(f"interop: {error}", file=sys.stderr)
            return error.exit_code
        except KeyboardInterrupt:
            print("interop: interrupted; all of its processes are ended", file=sys.stderr)
            return INTERRUPTED
        print(f"  seconds: {time.monotonic() - began_s:.0f}", flush=True)
    (arguments.out / "measured.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0


def arguments_of(given: Sequence[str]) -> argparse.Namespace:
    """What was asked for; all scenarios when none is named."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    # With no argument at all argparse compares the default with the choices: so none is given to it.
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"some of {', '.join(SCENARIOS)}")
    parser.add_argument(
        "--out", type=Path, default=Path("out/interop"), help="configurations, logs, captures"
    )
    arguments = parser.parse_args(given)
    if unknown := [name for name in arguments.scenarios if name not in SCENARIOS]:
        parser.error(f"no scenario {unknown[0]!r}: there are {', '.join(SCENARIOS)}")
    arguments.scenarios = arguments.scenarios or list(SCENARIOS)
    return arguments


def _play(name: str, folder: Path) -> dict[str, object]:
    play, _ = SCENARIOS[name]
    Cluster.remove_earlier(folder)
    folder.mkdir(parents=True, exist_ok=True)
    capture = folder / "traffic.pcapng"
    measured = Measured(name)
    apache = Apache(RELEASE)
    apache.fetch()
    with Cluster(folder) as cluster, captured(cluster, capture):
        play(Stage(cluster, Tools(cluster, apache), measured))
    judge(measured, capture, folder / "replay", options=REPLAY_OPTIONS)
    return measured.figures


if __name__ == "__main__":
    sys.exit(main())
