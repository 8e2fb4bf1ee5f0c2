"""One simulated run from one seed, and what must be true of it.

    python -m tests.sim.run SEED [SEED ...] [--drawn] [--trace]

prints the faults of each run, what was found, and the digest of its trace; `--drawn` takes the
settings of the brokers from the seed too, `--trace` prints every event.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from replispec.runtime.sim import NetworkTap, Rng
from replispec.runtime.world import Note
from replispec.wire.rocketmq.constants import FLUSHED_FILE, INDEX_FOLDER
from tests.linearizable.wire import Histories
from tests.sim.client import TOPIC
from tests.sim.cluster import HOSTS, LEARNERS, Cluster, address, broker_at, build
from tests.sim.history import Place
from tests.sim.nemesis import Fault
from tests.sim.pace import AskingPace
from tests.sim.settings import PLAIN, Promise, Settings, drawn

FAULTS_FROM_MS: Final = 1_500
FAULTS_UNTIL_MS: Final = 9_000
SETTLE_MS: Final = 60_000


@dataclass
class Result:
    """What came of a run. `wrong` is empty when every promise was kept."""

    seed: int
    digest: str
    faults: list[Fault]
    wrong: list[str]
    acknowledged: int
    masters: int
    settings: Settings = PLAIN
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """One paragraph for people, with the way to see the run again."""
        head = (
            f"seed {self.seed}: {len(self.wrong)} wrong, {self.acknowledged} messages acknowledged, "
            f"{self.masters} epochs, digest {self.digest[:16]}; python -m tests.sim.run {self.seed}"
            f"{'' if self.settings == PLAIN else ' --drawn'}\n  {self.settings}"
        )
        faults = [f"  {each.at_ms:>6} ms: {each.what} ({each.lasts_ms} ms)" for each in self.faults]
        return "\n".join([head, *faults, *(f"  WRONG: {each}" for each in self.wrong)])


def run(
    seed: int,
    settings: Settings = PLAIN,
    *,
    keeps_lines: bool = False,
    tap: NetworkTap | None = None,
    prepare: Callable[[Cluster], None] = lambda _: None,
) -> Result:
    """Let a cluster live through its faults, heal it, and judge it. `tap` sees its traffic; `prepare` is
    handed the cluster before anything runs."""
    cluster = build(seed, keeps_lines=keeps_lines, settings=settings)
    prepare(cluster)
    controllers = {*map(address, cluster.controllers), *cluster.joining}
    pace = AskingPace(controllers, tap)
    histories = cluster.world.network.tap = Histories(controllers, pace)
    if settings.obeys and settings.is_durable:
        cluster.history.copies_min, cluster.history.count_copies = settings.copies_min, cluster.copies
    operator = Operator(cluster)

    masters = Masters()

    def hear(name: str, note: Note) -> None:
        operator.hear(name, note)
        masters.hear(note)
        cluster.nemesis.hear(note)

    cluster.world.notes = hear
    wrong: list[str] = []
    rng = Rng(~seed)
    cluster.start()
    cluster.world.after(1_500_000, cluster.nemesis.supervise)
    cluster.nemesis.plan(rng.between(1, 5), from_ms=FAULTS_FROM_MS, until_ms=FAULTS_UNTIL_MS)
    for _ in range(FAULTS_UNTIL_MS // 1_000 + 3):
        cluster.world.run_for(1_000)
        wrong += keep_ids(cluster)
    cluster.nemesis.heal()
    acknowledged = len(cluster.history.acknowledged)
    if not cluster.world.run_until(lambda: is_whole(cluster, acknowledged), at_most_ms=SETTLE_MS):
        wrong.append(f"not whole {SETTLE_MS} ms after all was healed: {cluster.history.views[-1:]}")
    cluster.client.is_sending = False
    cluster.world.run_for(4_000)
    wrong += keep_ids(cluster)
    if not wrong or not wrong[-1].startswith("not whole"):
        # A learner hears of what is confirmed a little after it has the bytes.
        cluster.world.run_until(lambda: not differing(cluster) and not judged(cluster), at_most_ms=SETTLE_MS)
        wrong += differing(cluster)
    wrong += judged(cluster) + outsiders(cluster) + operator.wrong + pace.judge() + masters.wrong
    wrong += histories.judge()
    return Result(
        seed,
        cluster.world.digest(),
        cluster.nemesis.faults,
        wrong,
        len(cluster.history.acknowledged),
        len({view.epoch for view in cluster.history.views}),
        settings,
        cluster.world.lines,
    )


def judged(cluster: Cluster) -> list[str]:
    """What is wrong with what clients were told, as far as the settings promise it. Consumers are shown what
    not all members have where sends do not wait for all: then what was read may be lost."""
    history, settings = cluster.history, cluster.settings
    has_stayed = len({view.master for view in history.views if view.master}) == 1
    if settings.promise is Promise.WHILE_THE_MASTER_STAYS and not has_stayed:
        return []
    log = cluster.deleted | cluster.messages(broker_at(cluster.client.master))
    if not settings.all_ack and not has_stayed:
        return history.judge_acknowledged(log)
    return history.judge(log) + misled(cluster)


class Operator:
    """Repairs by hand what no replica repairs by itself: a log that shares no epoch with the master's, as
    after a first master of whose messages nobody else had one, or one that ends before the master's begins.
    Its owner empties it.

    A member of the SyncStateSet never needs this.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.wrong: list[str] = []
        self._cluster = cluster

    def hear(self, name: str, note: Note) -> None:
        """Read one line of the log of a process."""
        if note.what.startswith("no epoch shared"):
            self._cluster.world.after(1_000_000, partial(self._empty, name))
        elif note.what == "replica wants deleted bytes":
            host = str(note.values["peer"]).rpartition(":")[0]
            late = next(each for each, where in HOSTS.items() if where == host)
            self._cluster.world.after(1_000_000, partial(self._empty, late))

    def _empty(self, name: str) -> None:
        world = self._cluster.world
        process = world.processes[name]
        if not process.is_alive:
            return
        if self._cluster.broker_id(name) in self._cluster.members():
            self.wrong.append(f"{name} is in the SyncStateSet and shares no epoch with the master")
        world.trace("operator", f"empties the log of {name}")
        world.kill(name)
        # Up to where the log was on the disk goes with it: who leaves it there is refused at the start.
        parts = ("/commitlog/", "epoch", FLUSHED_FILE, INDEX_FOLDER)
        for file in [each for each in process.disk.contents if any(part in each for part in parts)]:
            del process.disk.contents[file]
        world.start(name)


class Masters:
    """Whom the controllers say they have elected: in each masterEpoch nobody or one."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._elected: dict[object, object] = {}

    def hear(self, note: Note) -> None:
        """Read one line of the log of a process."""
        if note.what == "master elected":
            epoch, master = note.values["master_epoch"], note.values["master"]
            if self._elected.setdefault(epoch, master) != master:
                self.wrong.append(f"{self._elected[epoch]} and {master} are masters of epoch {epoch}")


def is_whole(cluster: Cluster, acknowledged: int) -> bool:
    """Whether the set has all its brokers again, and messages are acknowledged."""
    view = cluster.history.views[-1] if cluster.history.views else None
    return (
        view is not None
        and view.master != 0
        and len(view.members) == len(cluster.brokers)
        and len(cluster.history.acknowledged) > acknowledged + 5
    )


def keep_ids(cluster: Cluster) -> list[str]:
    """What is wrong with the identities that the brokers' disks hold now."""
    wrong = []
    for name in cluster.brokers:
        identity = cluster.identity(name)
        if identity is not None and cluster.ids.setdefault(name, identity) != identity:
            wrong.append(f"{name} was {cluster.ids[name]!r} and is {identity!r}")
    if len(set(cluster.ids.values())) < len(cluster.ids):
        wrong.append(f"two brokers have one identity: {cluster.ids}")
    return wrong


def differing(cluster: Cluster) -> list[str]:
    """Whose log is not that of the master, byte for byte, from where on both have one."""
    master = broker_at(cluster.client.master)
    found = []
    for name in (*cluster.brokers, *LEARNERS):
        first = max(cluster.first(name), cluster.first(master))
        if cluster.log_from(name, first).rstrip(b"\0") != cluster.log_from(master, first).rstrip(b"\0"):
            found.append(f"the log of {name} is not that of {master}")
    return found


def misled(cluster: Cluster) -> list[str]:
    """What the learner told that the log does not hold, told twice, told out of order, or did not tell."""
    held = cluster.messages(broker_at(cluster.client.master))
    log = cluster.deleted | held
    told: dict[Place, int] = {}
    wrong = []
    end = 0
    for line in cluster.exported():
        if line.get("topic") != TOPIC:
            wrong.append(f"the learner had to take something back: {line}")
            continue
        place = (int(str(line["queue"])), int(str(line["position"])))
        if place in told or int(str(line["offset"])) < end:
            wrong.append(f"the learner told of {place} again or too late")
        told[place] = int(str(line["text"]).partition(".")[0])
        end = int(str(line["end"]))
    different = [place for place in sorted({*told, *held}) if told.get(place) != log.get(place)]
    if different:
        wrong.append(f"the learner told other things than the log holds: {different[:5]} of {len(log)}")
    return wrong


def outsiders(cluster: Cluster) -> list[str]:
    """Sets and masters that are not brokers: a learner is neither."""
    ids = [cluster.broker_id(name) for name in cluster.brokers]
    named = {*(member for view in cluster.history.views for member in (*view.members, view.master))} - {0}
    return [
        f"{each} was in a SyncStateSet or master, the brokers are {ids}" for each in sorted(named - set(ids))
    ]


def main() -> None:
    """The command line."""
    numbers = [int(argument) for argument in sys.argv[1:] if not argument.startswith("--")]
    failed = False
    for seed in numbers:
        settings = drawn(seed) if "--drawn" in sys.argv else PLAIN
        result = run(seed, settings, keeps_lines="--trace" in sys.argv)
        sys.stdout.writelines(result.lines)
        sys.stdout.write(f"{result}\n")
        failed = failed or bool(result.wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
