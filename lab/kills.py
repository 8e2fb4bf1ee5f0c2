"""`make kills`: processes of ours are struck at random moments, again and again, under load.

A strike kills one process or two with -9, stops one for a while as SIGSTOP does, or takes the power from one
machine or all of them: what was written there and not flushed is gone, for which each has a disk of its own
(`lab.disks`; as root, else the strikes that take the power are left out). The cluster must acknowledge again
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
from contextlib import ExitStack
from pathlib import Path

from lab import families
from lab.cluster import Cluster, end_in_order
from lab.disks import SECTOR_BYTES, Disk, go_on_alone, why_not
from lab.errors import LabError
from lab.family import KilledCluster, LoadSender

PATIENCE_S = 60.0
TOLD_EVERY = 50
POWER = "power of "
# How often a strike is which: of hundred.
STRIKES = {"kill one": 45, "kill two": 20, "stop": 15, f"{POWER}one": 12, f"{POWER}all": 8}
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
    families.add_choice(parser, part="killed")
    parser.add_argument(
        "--only", choices=STRIKES, action="append", help="strikes of this kind; may be given several times"
    )
    parser.add_argument("--disks", choices=("ask", "own", "none"), default="ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.disks == "ask":
        missing = why_not()
        if missing is None:
            go_on_alone("-m", "lab.kills", *sys.argv[1:], "--disks", "own")
        print(f"kills: no machine loses its power: {missing}", flush=True)
    end_in_order()
    return _played(arguments)


def _played(arguments: argparse.Namespace) -> int:
    clusters = families.in_the_lab(arguments.family).killed
    kinds = {name: STRIKES[name] for name in arguments.only or STRIKES}
    if arguments.disks != "own":
        kinds = {name: often for name, often in kinds.items() if not name.startswith(POWER)}
    if not kinds:
        print("kills: nothing is left to be done", file=sys.stderr)
        return 2
    try:
        for number, (name, make) in enumerate(clusters.items()):
            strikes = arguments.kills // len(clusters) + (number < arguments.kills % len(clusters))
            began_s = time.monotonic()
            Cluster.remove_earlier(arguments.out)
            # Its processes end before its disks are taken away.
            with ExitStack() as ending, Cluster(arguments.out) as cluster:
                killed = make(cluster)
                disks = _disks(cluster, killed, ending) if arguments.disks == "own" else {}
                played = Play(cluster, killed, disks, kinds, random.Random(arguments.seed))
                summary = played.play(strikes)
            took_s = time.monotonic() - began_s
            print(f"{name}: {summary} in {took_s:.0f} s (seed {arguments.seed})", flush=True)
    except LabError as error:
        print(f"kills: {name}, seed {arguments.seed}: {error}", file=sys.stderr)
        if arguments.disks == "own":
            print(
                f"kills: to look at a disk: mount -o loop {arguments.out}/disks/NAME FOLDER", file=sys.stderr
            )
        return 1
    except KeyboardInterrupt:
        print("kills: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    return 0


def _disks(cluster: Cluster, killed: KilledCluster, ending: ExitStack) -> dict[str, Disk]:
    images = cluster.part("disks")
    disks = {name: Disk(images / name, killed.folder(name)) for name in killed.names}
    for disk in disks.values():
        disk.make()
        ending.callback(disk.close)
    return disks


class Play:
    """One cluster and its strikes."""

    def __init__(
        self,
        cluster: Cluster,
        killed: KilledCluster,
        disks: Mapping[str, Disk],
        strikes: Mapping[str, int],
        randomness: random.Random,
    ) -> None:
        self._cluster = cluster
        self._killed = killed
        self._disks = disks
        self._strikes = strikes
        self._randomness = randomness
        self._done: Counter[str] = Counter()
        self._lost_sectors = 0

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
            f"{strikes} strikes {dict(self._done)}, {self._lost_sectors} sectors of "
            f"{SECTOR_BYTES} bytes lost with the power: "
            f"{len(sender.acknowledged)} of {sender.sent} messages acknowledged, {killed.judged(sender)}"
        )

    def _strike(self) -> None:
        randomness = self._randomness
        time.sleep(randomness.uniform(0.0, 0.4))
        (strike,) = randomness.choices(list(self._strikes), list(self._strikes.values()))
        if strike == f"{POWER}all" and not self._killed.is_certain:
            strike = f"{POWER}one"
        self._done[strike] += 1
        struck = len(self._killed.names) if strike == f"{POWER}all" else 1 + (strike == "kill two")
        names = randomness.sample(self._killed.names, struck)
        if strike == "stop":
            self._stop(names[0])
        elif strike.startswith(POWER) and not self._killed.is_certain:
            # The others have what was acknowledged before, and so has this one before the next.
            self._killed.wait_whole()
            self._kill(names, has_power=False)
            self._killed.wait_whole()
        else:
            self._kill(names, has_power=not strike.startswith(POWER))

    def _stop(self, name: str) -> None:
        self._cluster.pause(name)
        time.sleep(self._randomness.choice(STOPS_S))
        self._cluster.resume(name)

    def _kill(self, names: list[str], *, has_power: bool) -> None:
        for name in names:
            self._cluster.kill(name)
        share = self._randomness.choice(SHARES)
        for name in names if not has_power else ():
            self._lost_sectors += self._disks[name].cut(self._randomness, share)
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
