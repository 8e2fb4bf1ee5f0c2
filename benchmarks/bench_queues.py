"""`make bench-queues`: queues that are mapped to others beside plain ones, in turns.

Messages sent and read, queues that move under load, whole topics moved by commands of ours and of somebody
else, many topics told to a name server, and a queue read over many borders. The result is a table for each
part, and out/bench/queues.json. Nothing fails because it is slow; exit code 1 says that a result was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.family import Bench, Effort, QueuePart, measured_family
from benchmarks.tables import table
from lab import families
from lab.cluster import end_in_order
from lab.errors import LabError

OUT = Path(__file__).parents[1] / "out/bench"
WRONG, INTERRUPTED = 1, 130


def main() -> int:
    """Exit code 3 when a subject cannot be had, 1 when something did what it should not."""
    first = argparse.ArgumentParser(add_help=False)
    families.add_choice(first, "benchmarks")
    parts = measured_family(first.parse_known_args()[0].family).queues
    arguments = _arguments(first, parts)
    end_in_order()
    effort = Effort(arguments.rounds, arguments.messages, arguments.moves, arguments.topics)
    chosen = {name: parts[name] for name in arguments.only}
    load, wrong = os.getloadavg()[0], list[str]()
    seen = {name: Bench(part.figures) for name, part in chosen.items()}
    try:
        for subject in {each.name: each for part in chosen.values() for each in part.subjects}.values():
            subject.fetch()
        for name, part in chosen.items():
            print(f"{name}: {part.about}", file=sys.stderr, flush=True)
            wrong += _measured(name, part, seen[name], effort)
    except LabError as error:
        print(f"bench-queues: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-queues: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    kept = {"load": load, "wrong": wrong, "seen": {name: bench.seen for name, bench in seen.items()}}
    (OUT / "queues.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(f"Medians (smallest to largest), ratios of the same round; load {load:.1f} before.")
    for name, part in chosen.items():
        print("\n".join(["", f"{name}: {part.about}", "", *table(seen[name], part.columns, part.base)]))
    for each in wrong:
        print(f"bench-queues: {each}", file=sys.stderr)
    return WRONG if wrong else 0


def _arguments(first: argparse.ArgumentParser, parts: Mapping[str, QueuePart]) -> argparse.Namespace:
    about = "\n".join(f"  {name:<12}{part.about}" for name, part in parts.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"parts:\n{about}",
        parents=[first],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=list(parts), default=list(parts), metavar="PART")
    parser.add_argument("--rounds", type=int, default=3, help="in turns, each")
    parser.add_argument("--messages", type=int, default=8_000, help="of each kind of topic in a round")
    parser.add_argument("--moves", type=int, default=500, help="of logical queues, under load")
    parser.add_argument("--topics", type=int, default=1_000, help="that are told to a name server")
    return parser.parse_args()


def _measured(name: str, part: QueuePart, bench: Bench, effort: Effort) -> Sequence[str]:
    """What was wrong. Raises LabError where a subject is missing, KeyboardInterrupt."""
    try:
        part.measure(bench, effort)
    except LabError as error:
        if error.exit_code != WRONG:
            raise
        print(f"  wrong: {error}", file=sys.stderr, flush=True)
        return [f"{name}: {error}"]
    return []


if __name__ == "__main__":
    sys.exit(main())
