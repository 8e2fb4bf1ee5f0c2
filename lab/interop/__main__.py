"""`make interop`: play the scenarios, judge their traffic, and say what was measured."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab import families
from lab.capture import captured
from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import ROUNDS, SEED, Interop, Rounds
from lab.interop.measured import Measured, as_json, judge

INTERRUPTED = 130


def main() -> int:
    """Exit code 0: all as demanded; 1: not, with the first thing that was not; 3: something is missing."""
    arguments = arguments_of(sys.argv[1:])
    interop = _interop_of(arguments.family)
    rounds = Rounds(arguments.rounds, arguments.seed, arguments.release)
    results: dict[str, object] = {}
    for name in arguments.scenarios:
        _, about = interop.scenarios[name]
        print(f"{name}: {about} ({interop.others})", flush=True)
        began_s = time.monotonic()
        try:
            results[name] = _play(interop, name, arguments.out / name, rounds)
        except LabError as error:
            print(f"interop: {error}", file=sys.stderr)
            return error.exit_code
        except KeyboardInterrupt:
            print("interop: interrupted; all of its processes are ended", file=sys.stderr)
            return INTERRUPTED
        print(f"  seconds: {time.monotonic() - began_s:.0f}", flush=True)
    (arguments.out / "measured.json").write_text(as_json(results))
    return 0


def arguments_of(given: Sequence[str]) -> argparse.Namespace:
    """What was asked for; all scenarios when none is named."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    # With no argument at all argparse compares the default with the choices: so none is given to it.
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="only these")
    parser.add_argument(
        "--out", type=Path, default=Path("out/interop"), help="configurations, logs, captures"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="strikes of `group` (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of its strikes (default: %(default)s)")
    parser.add_argument("--release", default="", help="of the brokers of `group` (default: as in all others)")
    families.add_choice(parser, part="interop")
    arguments = parser.parse_args(given)
    every = _interop_of(arguments.family).scenarios
    if unknown := [name for name in arguments.scenarios if name not in every]:
        parser.error(f"no scenario {unknown[0]!r}: there are {', '.join(every)}")
    arguments.scenarios = arguments.scenarios or list(every)
    return arguments


def _interop_of(family: str) -> Interop:
    """The scenarios of a family that has some."""
    interop = families.in_the_lab(family).interop
    assert interop is not None, "it is one of those that have scenarios"
    return interop


def _play(interop: Interop, name: str, folder: Path, rounds: Rounds) -> dict[str, object]:
    play, _ = interop.scenarios[name]
    Cluster.remove_earlier(folder)
    folder.mkdir(parents=True, exist_ok=True)
    capture = folder / "traffic.pcapng"
    measured = Measured(name)
    interop.fetch()
    with Cluster(folder) as cluster, captured(cluster, capture):
        play(cluster, measured, rounds)
    if interop.is_replayed:
        judge(measured, capture, folder / "replay", options=interop.replay_options)
    return measured.figures


if __name__ == "__main__":
    sys.exit(main())
