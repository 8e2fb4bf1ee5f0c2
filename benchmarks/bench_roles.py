"""Our roles against those of somebody else, in turns, in the clear and with TLS: requests, replication,
fail-over, their cost.

A file that is sent over loopback into another file is the floor. The result is a table and
out/bench/roles.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.family import FLOOR, SEALED, Bench, MeasuredRoles, measured_family
from lab import families
from lab.errors import LabError

OUT = Path(__file__).parents[1] / "out/bench"
INTERRUPTED = 130


def main() -> int:
    """Exit code 3 when a subject cannot be had, 1 when a cluster does not do what it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of requests")
    parser.add_argument("--megabytes", type=int, default=512, help="the backlog")
    parser.add_argument("--only", choices=("requests", "replication"), help="one half")
    families.add_choice(parser, "benchmarks")
    arguments = parser.parse_args()
    measured = measured_family(arguments.family).roles
    bench = Bench(measured.figures)
    load = os.getloadavg()[0]
    try:
        for subject in measured.subjects:
            subject.fetch()
        if arguments.only != "replication":
            measured.requests(bench, arguments.rounds, arguments.seconds)
        if arguments.only != "requests":
            measured.replication(bench, arguments.rounds, arguments.megabytes)
    except LabError as error:
        print(f"bench-roles: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-roles: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "roles.json").write_text(json.dumps({"load": load, "seen": bench.seen}, indent=1) + "\n")
    print("\n".join(_table(bench, measured, load)))
    return 0


def _table(bench: Bench, measured: MeasuredRoles, load: float) -> Sequence[str]:
    """Medians, and ours as a ratio to theirs."""
    ours, theirs = (subject.name for subject in measured.subjects)
    lines = [
        f"Medians; {measured.against}; load {load:.1f} before.",
        "",
        "| figure | unit | ours | theirs | ours / theirs | ours, TLS | theirs, TLS |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for figure, (unit, _) in bench.figures.items():
        values = bench.seen.get(figure)
        if values and values[ours] and values[theirs]:
            own, other = (statistics.median(values[each]) for each in (ours, theirs))
            sealed = [_median(values.get(each + SEALED, ())) for each in (ours, theirs)]
            shown = f"{own:,.3g} | {other:,.3g} | {own / other:.2f} | {' | '.join(sealed)}"
            lines.append(f"| {figure} | {unit} | {shown} |")
    if bench.seen[FLOOR][ours]:
        floor = statistics.median(bench.seen[FLOOR][ours])
        lines.append(f"| a file over loopback into a file | MB/s | {floor:,.0f} | | | | |")
    return lines


def _median(values: Sequence[float]) -> str:
    """The median as it is shown; nothing of what was not measured."""
    return f"{statistics.median(values):,.3g}" if values else ""


if __name__ == "__main__":
    sys.exit(main())
