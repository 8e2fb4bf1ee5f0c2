"""`make bench-kafka`: our controller, metastore and brokers beside Kafka's and ZooKeeper's, in turns.

Fail-overs of thousands of partitions by phase, three brokers of which one ends, records and a backlog, reads
and writes of stores. The result is a table for each part, and out/bench/kafka.json. Nothing fails because it
is slow; exit code 1 says that a result was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.family import FLOOR, Bench
from benchmarks.kafka import brokers, copies, fail_over, stores
from benchmarks.kafka.stages import KAFKA, ZOOKEEPER
from benchmarks.tables import table
from lab.cluster import end_in_order
from lab.errors import LabError

OUT: Final = Path(__file__).parents[2] / "out/bench"
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much is measured."""

    rounds: int
    partitions: tuple[int, ...]
    on_brokers: int
    records: int
    megabytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """`columns` are whose figures there are, the others as ratios to `base` of the same round."""

    about: str
    columns: Sequence[str]
    base: str
    figures: Mapping[str, tuple[str, bool]]
    measure: Callable[[Bench], None]


WHOLE: Final = Amounts(3, (1_000, 10_000), 1_000, 100_000, 512, 3.0)
QUICK: Final = Amounts(1, (1_000,), 100, 5_000, 64, 0.5)


def parts(amounts: Amounts) -> Mapping[str, MeasuredPart]:
    """All parts by name."""
    ours, kafka, zookeeper, rounds = fail_over.OURS, fail_over.KAFKA, fail_over.ZOOKEEPER, amounts.rounds
    return {
        "failover": MeasuredPart(
            "seconds from the end of a broker's session, by whose controller on whose store",
            [f"{who} on {store}" for who, store in fail_over.WHO],
            f"{kafka} on {zookeeper}",
            fail_over.figures(amounts.partitions),
            lambda bench: fail_over.measure(bench, amounts.partitions, rounds),
        ),
        "brokers": MeasuredPart(
            "one of three whole brokers ends, on our metastore",
            [ours, kafka],
            kafka,
            brokers.figures(amounts.on_brokers),
            lambda bench: brokers.measure(bench, amounts.on_brokers, rounds),
        ),
        "copies": MeasuredPart(
            "records of 1 kB by Kafka's client, and a backlog, on three brokers; ours flush, Kafka's do not",
            [ours, kafka],
            kafka,
            {**copies.FIGURES, FLOOR: ("MB/s", True)},
            lambda bench: copies.measure(bench, amounts.records, amounts.megabytes, rounds),
        ),
        "stores": MeasuredPart(
            "reads and writes of one client, 100 bytes each",
            [ours, zookeeper],
            zookeeper,
            stores.FIGURES,
            lambda bench: stores.measure(bench, amounts.seconds, rounds),
        ),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 3 when a program of others cannot be had, 1 when a result was wrong."""
    names = list(parts(WHOLE))
    parser = argparse.ArgumentParser(prog="make bench-kafka", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="PART", help=", ".join(names)
    )
    parser.add_argument("--quick", action="store_true", help="one round of less, where others are at work")
    arguments = parser.parse_args(words)
    every = parts(QUICK if arguments.quick else WHOLE)
    chosen = {name: every[name] for name in arguments.only}
    end_in_order()
    load = os.getloadavg()[0]
    try:
        KAFKA.fetch()
        ZOOKEEPER.fetch()
        seen = {name: _measured(name, part) for name, part in chosen.items()}
    except LabError as error:
        print(f"bench-kafka: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench-kafka: interrupted; all of its processes are ended", file=sys.stderr)
        return INTERRUPTED
    OUT.mkdir(parents=True, exist_ok=True)
    kept = {"load": load, "seen": {name: bench.seen for name, bench in seen.items()}}
    (OUT / "kafka.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(f"Medians (smallest to largest), ratios of the same round; load {load:.1f} before.")
    for name, part in chosen.items():
        print("\n".join(["", f"{name}: {part.about}", "", *table(seen[name], part.columns, part.base)]))
    return 0


def _measured(name: str, part: MeasuredPart) -> Bench:
    print(f"{name}: {part.about}", file=sys.stderr, flush=True)
    bench = Bench(part.figures)
    part.measure(bench)
    return bench


if __name__ == "__main__":
    sys.exit(main())
