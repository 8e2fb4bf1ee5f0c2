"""`make kills`: processes of ours are struck at random moments, again and again, under load.

A strike kills one process or two with -9, stops one for a while as SIGSTOP does, or takes the power from one
machine or all of them: what was written there and not flushed is gone. The cluster must acknowledge again
before the next. At the end every acknowledged message lies where its sender was told, every message that a
consumer read lies where it was read, no queue has a gap, every identity is what it was, and the logs are the
same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lab import families
from lab.cluster import Cluster, end_in_order
from lab.errors import LabError
from lab.family import KilledCluster, LoadSender

PATIENCE_S = 60.0
TOLD_EVERY = 50
# How often a strike is which: of hundred.
STRIKES = {"kill one": 45, "kill two": 20, "stop": 15, "power of one": 12, "power of all": 8}
# Shorter and longer than what a silent process may take.
STOPS_S = (0.1, 1.0, 3.5)
# Nothing that was not flushed is on the disk, or about half of it.
SHARES = (1.0, 0.5)


def main() -> int:
    """Exit code 0: nothing acknowledged was lost, and every process came back as who it was."""
    parser = argparse.ArgumentParser(prog="make kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="strikes in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/kills"), help="in place of an earlier run's")
    families.add_choice(parser)
    arguments = parser.parse_args()
    end_in_order()
    clusters = families.in_the_lab(arguments.family).killed
    try:
        for number, (name, make) in enumerate(clusters.items()):
            strikes = arguments.kills // len(clusters) + (number < arguments.kills % len(clusters))
            began_s = time.monotonic()
            Cluster.remove_earlier(arguments.out)
            with Cluster(arguments.out) as cluster:
                summary = Play(cluster, make(cluster), random.Random(arguments.seed)).play(strikes)
            took_s = time.monotonic() - began_s
            print(f"{name}: {summary} in {took_s:.0f} s (seed {arguments.seed})", flush=True)
    except LabError as error:
        print(f"kills: {name}, seed {arguments.seed}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kills: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    return 0


class Play:
    """One cluster and its strikes."""

    def __init__(self, cluster: Cluster, killed: KilledCluster, randomness: random.Random) -> None:
        self._cluster = cluster
        self._killed = killed
        self._randomness = randomness
        self._done: Counter[str] = Counter()
        self._lost_bytes = 0

    def play(self, strikes: int) -> str:
        """What happened. Raises LabError for whatever was lost."""
        killed = self._killed
        for name in killed.names:
            killed.start(name)
        killed.wait_whole()
        identities = killed.identities()
        sender = killed.load()
        sender.start()
        try:
            for number in range(1, strikes + 1):
                self._strike()
                self._wait_for_more(sender)
                self._compare(identities)
                if number % TOLD_EVERY == 0:
                    print(f"  {number} of {strikes}: {len(sender.acknowledged)} acknowledged", flush=True)
        finally:
            sender.stop()
        killed.wait_whole()
        return (
            f"{strikes} strikes {dict(self._done)}, {self._lost_bytes} bytes lost with the power: "
            f"{len(sender.acknowledged)} of {sender.sent} messages acknowledged, {killed.judged(sender)}"
        )

    def _strike(self) -> None:
        randomness = self._randomness
        time.sleep(randomness.uniform(0.0, 0.4))
        (strike,) = randomness.choices(list(STRIKES), list(STRIKES.values()))
        if strike == "power of all" and not self._killed.is_certain:
            strike = "power of one"
        self._done[strike] += 1
        struck = len(self._killed.names) if strike == "power of all" else 1 + (strike == "kill two")
        names = randomness.sample(self._killed.names, struck)
        if strike == "stop":
            self._stop(names[0])
        elif strike.startswith("power") and not self._killed.is_certain:
            # The others have what was acknowledged before, and so has this one before the next.
            self._killed.wait_whole()
            self._kill(names, has_power=False)
            self._killed.wait_whole()
        else:
            self._kill(names, has_power=not strike.startswith("power"))

    def _stop(self, name: str) -> None:
        self._cluster.pause(name)
        time.sleep(self._randomness.choice(STOPS_S))
        self._cluster.resume(name)

    def _kill(self, names: list[str], *, has_power: bool) -> None:
        for name in names:
            self._cluster.kill(name)
        share = self._randomness.choice(SHARES)
        for name in names if not has_power else ():
            self._lost_bytes += self._killed.lose_power(name, self._randomness, share)
        time.sleep(self._randomness.uniform(0.0, 0.3))
        for name in names:
            self._killed.start(name)

    def _compare(self, identities: Mapping[str, bytes]) -> None:
        for name, identity in self._killed.identities().items():
            if identity != identities[name]:
                raise LabError(f"{name} has another identity")

    def _wait_for_more(self, sender: LoadSender) -> None:
        before = len(sender.acknowledged)

        def reached() -> bool | None:
            return len(sender.acknowledged) > before + 3 or None

        self._cluster.until(reached, "messages acknowledged after a strike", patience_s=PATIENCE_S)


if __name__ == "__main__":
    sys.exit(main())
