"""`make bench-group`: our group of three controllers beside those of somebody else, in turns, in one run.

Requests to the leader, its death, masters that die together, many sets that send heartbeats, a start with a
long log, a new member that catches up, memory. The result is a table and out/bench/group.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.family import Bench, MeasuredGroups, measured_family
from lab import families
from lab.cluster import end_in_order
from lab.errors import LabError

OUT = Path(__file__).parents[1] / "out/bench"
INTERRUPTED = 130
PARTS = ("requests", "leaders", "sets", "restart", "joins")


def main() -> int:
    """Exit code 3 when a subject cannot be had, 1 when a group does not do what it should."""
    first = argparse.ArgumentParser(add_help=False)
    families.add_choice(first, "benchmarks")
    measured = measured_family(first.parse_known_args()[0].family).groups
    parser = argparse.ArgumentParser(description=__doc__, parents=[first])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of requests")
    parser.add_argument("--records", type=int, default=1_000_000, help="of the log before the start")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--groups", nargs="+", choices=list(measured.subjects), default=list(measured.subjects)
    )
    arguments = parser.parse_args()
    end_in_order()
    bench = Bench(measured.figures)
    load = os.getloadavg()[0]
    try:
        for who in arguments.groups:
            measured.subjects[who].fetch()
        _measure(bench, measured, arguments)
    except LabError as error:
        print(f"bench-group: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-group: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "group.json").write_text(json.dumps({"load": load, "seen": bench.seen}, indent=1) + "\n")
    print("\n".join(table(bench, arguments.groups, load)))
    return 0


def _measure(bench: Bench, measured: MeasuredGroups, arguments: argparse.Namespace) -> None:
    with ExitStack() as stack:
        groups = [stack.enter_context(measured.running(who)) for who in arguments.groups]
        if "requests" in arguments.only:
            measured.requests(bench, groups, arguments.rounds, arguments.seconds)
        if "leaders" in arguments.only:
            measured.leaders(bench, groups, arguments.rounds)
        if "sets" in arguments.only:
            measured.sets(bench, groups, arguments.seconds * 2)
        if "restart" in arguments.only:
            measured.restart(bench, groups, arguments.records)
        if "joins" in arguments.only:
            measured.joins(bench, groups, arguments.records)


def table(bench: Bench, groups: Sequence[str], load: float) -> Sequence[str]:
    """Medians, and of several values the smallest and the largest."""
    lines = [
        f"Medians (smallest to largest); load {load:.1f} before.",
        "",
        f"| figure | unit | {' | '.join(groups)} |",
        f"| --- | --- |{' --- |' * len(groups)}",
    ]
    for figure, (unit, _) in bench.figures.items():
        values = [bench.seen.get(figure, {}).get(who, []) for who in groups]
        if any(values):
            lines.append(f"| {figure} | {unit} | {' | '.join(map(_cell, values))} |")
    return lines


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    middle = f"{statistics.median(values):,.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.3g} to {max(values):,.3g})"


if __name__ == "__main__":
    sys.exit(main())
