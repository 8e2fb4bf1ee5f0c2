"""`make demo`: a cluster of ours loses its master, gets it back, and shows that nothing confirmed was lost;
`make demo-queues`: logical queues move among brokers that come and go. Another family's demo has a target of
its own.

All of its traffic is recorded by its processes themselves and judged by the replay, where that knows it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from lab import families
from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import Story
from lab.merge import merge

REPLAY_FAILED = 2


def main() -> int:
    """Exit code 0: nothing confirmed was lost and nothing violated; 1 otherwise."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        help="report, capture and cluster/, in place of those of an earlier run",
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark", help="what replays")
    parser.add_argument("--play", metavar="NAME", help="another demo than that of a lost master")
    families.add_choice(parser, part="demo")
    arguments = parser.parse_args()
    family = families.in_the_lab(arguments.family)
    demo = family.demo if arguments.play is None else family.more_demos[arguments.play]
    assert demo is not None, "it is one of those that have a demo"
    story = Story()
    folder = arguments.out / "cluster"
    try:
        Cluster.remove_earlier(folder)
        with Cluster(folder) as cluster:
            demo.play(cluster, story)
        capture = _collect(arguments.out, story)
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    if not demo.is_replayed:
        story.tell(f"done; its traffic is kept in {capture}")
        return 0
    options = ("--out", str(arguments.out), "--engine", arguments.engine, *demo.replay_options)
    return _replay(capture, options, story)


def _collect(out: Path, story: Story) -> Path:
    capture = out / "traffic.pcap"
    count = merge(sorted((out / "cluster" / "tap").iterdir()), capture)
    story.tell(f"{count} packets recorded by the processes themselves")
    return capture


def _replay(capture: Path, options: tuple[str, ...], story: Story) -> int:
    command = [sys.executable, "-m", "replispec.cli", "replay", str(capture), *options]
    code = subprocess.run(command, check=False).returncode
    story.tell(
        "done" if code == 0 else "the replay found something" if code < REPLAY_FAILED else "not replayed"
    )
    return min(code, 1)


if __name__ == "__main__":
    sys.exit(main())
