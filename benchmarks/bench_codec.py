"""What decoding one message costs, against a bare parse of the same header: the first case of a family.

The bytes are those of the family's generated capture. Each case is repeated for a fixed time in several
bouts, all cases in turns; the best bout counts. The result is a table and out/bench/codec.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.family import CodecCase, measured_family
from lab import families

OUT = Path(__file__).parents[1] / "out/bench"
BOUTS = 60
Cases = Mapping[str, tuple[CodecCase, int]]


def bout(case: CodecCase, seconds: float) -> float:
    """Microseconds of one call, in a run of about so many seconds."""
    count = 100
    while True:
        begun = time.perf_counter()
        for _ in range(count):
            case()
        took = time.perf_counter() - begun
        if took >= seconds:
            return took / count * 1e6
        count = max(count * 2, int(count * seconds / max(took, 1e-9)))


def measure(cases: Cases, seconds: float) -> dict[str, float]:
    """Microseconds a call, by name."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(BOUTS):
        for name, (case, _) in cases.items():
            best[name] = min(best[name], bout(case, seconds))
    return best


def table(cases: Cases, best: dict[str, float]) -> Iterator[str]:
    """The figures as lines of text."""
    base = best[next(iter(cases))]
    yield f"{'':40}{'bytes':>8}{'us':>9}{'ratio':>8}\n"
    for name, cost in best.items():
        yield f"{name:40}{cases[name][1]:8}{cost:9.2f}{cost / base:8.2f}\n"


def main() -> None:
    """Measure, print the table, write out/bench/codec.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=0.005, help="length of one bout")
    families.add_choice(parser, "benchmarks")
    arguments = parser.parse_args()
    cases = measured_family(arguments.family).codec_cases()
    best = measure(cases, arguments.seconds)
    OUT.mkdir(parents=True, exist_ok=True)
    machine = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    document = {"machine": machine, "microseconds": best}
    (OUT / "codec.json").write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, best of {BOUTS} bouts\n")
    sys.stdout.writelines(table(cases, best))


if __name__ == "__main__":
    main()
