"""`make bench-hostile`: our roles under attack by hostile peers on loopback.

A peer that behaves well asks each role meanwhile; what counts is the longest that it waits (aim: 250 ms),
whether another master was elected (aim: never), and the memory of the process that is attacked. Attacks are
bounded in count and time and come one at a time, each on a cluster of its own. The result is a table and
out/bench/hostile.json; the exit code is 1 where a role ended or a master was replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.family import Attacked, measured_family
from lab import families
from lab.cluster import end_in_order
from lab.errors import LabError

OUT = Path(__file__).parents[1] / "out/bench"
INTERRUPTED = 130


def main() -> int:
    """Exit code 1 when a role ended or a master was replaced."""
    first = argparse.ArgumentParser(add_help=False)
    families.add_choice(first, "benchmarks")
    hostile = measured_family(first.parse_known_args()[0].family).hostile
    parser = argparse.ArgumentParser(
        description=__doc__, parents=[first], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each attack, at most (8)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=hostile.attacks,
        default=hostile.attacks,
        metavar="ATTACK",
        help=", ".join(hostile.attacks),
    )
    arguments = parser.parse_args()
    end_in_order()
    seen: list[Attacked] = []
    load = os.getloadavg()[0]
    try:
        for one in hostile.measure(arguments.only, arguments.seconds):
            print(f"  {_row(one)}", file=sys.stderr, flush=True)
            seen.append(one)
    except LabError as error:
        print(f"bench-hostile: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-hostile: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "hostile.json").write_text(
        json.dumps({"load": load, "seen": [asdict(each) for each in seen]}, indent=1)
    )
    print("\n".join(_table(seen, load)))
    return 1 if any(each.elections for each in seen) else 0


def _table(seen: Sequence[Attacked], load: float) -> Sequence[str]:
    roles = list(seen[0].worst_ms) if seen else []
    head = ["attack", "of", *(f"{role}, ms" for role in roles), "elections", "MB before", "MB at most"]
    return [
        f"The longest wait of a peer that behaves well, by role; load {load:.1f} before.",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *map(_row, seen),
    ]


def _row(one: Attacked) -> str:
    waits = (f"{wait:,.0f}" for wait in one.worst_ms.values())
    cells = (f"{one.count:,} {one.what}", one.name, *waits, str(one.elections))
    memory = (f"{one.before_mb:,.0f}", f"{one.most_mb:,.0f}")
    return f"| {' | '.join((*cells, *memory))} |"


if __name__ == "__main__":
    sys.exit(main())
