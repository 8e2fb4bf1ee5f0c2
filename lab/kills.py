"""`make kills`: processes of ours are killed with -9 at random moments, again and again, under load.

Each kill hits one process (now and then two), and the cluster must acknowledge again before the next. At
the end every acknowledged message is read back, every identity is what it was, and the logs are the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from lab import families
from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import KilledCluster, LoadSender

PATIENCE_S = 30.0


def main() -> int:
    """Exit code 0: nothing acknowledged was lost, and every process came back as who it was."""
    parser = argparse.ArgumentParser(prog="make kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/kills"), help="in place of an earlier run's")
    families.add_choice(parser)
    arguments = parser.parse_args()
    began_s = time.monotonic()
    try:
        Cluster.remove_earlier(arguments.out)
        with Cluster(arguments.out) as cluster:
            killed = families.in_the_lab(arguments.family).killed(cluster)
            summary = _play(cluster, killed, arguments.kills, random.Random(arguments.seed))
    except LabError as error:
        print(f"kills: seed {arguments.seed}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kills: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    print(f"{summary} in {time.monotonic() - began_s:.0f} s (seed {arguments.seed})")
    return 0


def _play(cluster: Cluster, killed: KilledCluster, kills: int, randomness: random.Random) -> str:
    for name in killed.names:
        killed.start(name)
    killed.wait_whole()
    identities = killed.identities()
    sender = killed.load()
    sender.start()
    done = dict.fromkeys(killed.names, 0)
    try:
        while sum(done.values()) < kills:
            time.sleep(randomness.uniform(0.0, 0.4))
            victims = randomness.sample(killed.names, 2 if randomness.random() < 0.2 else 1)
            for name in victims:
                cluster.kill(name)
                done[name] += 1
            time.sleep(randomness.uniform(0.0, 0.3))
            for name in victims:
                killed.start(name)
            _wait_for_more(cluster, sender)
            for name, identity in killed.identities().items():
                if identity != identities[name]:
                    raise LabError(f"{name} has another identity")
    finally:
        sender.stop()
    killed.wait_whole()
    return (
        f"{sum(done.values())} kills {done}: {len(sender.acknowledged)} of {sender.sent} messages "
        f"acknowledged, {killed.judged(sender)}"
    )


def _wait_for_more(cluster: Cluster, sender: LoadSender) -> None:
    before = len(sender.acknowledged)

    def reached() -> bool | None:
        return len(sender.acknowledged) > before + 3 or None

    cluster.until(reached, "messages acknowledged after a kill", patience_s=PATIENCE_S)


if __name__ == "__main__":
    sys.exit(main())
