"""A group of ours takes the place of Java's controller: founded with its folder, over its Java brokers."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from lab.cluster import BROKER_NAME, Settings
from lab.errors import LabError
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.apache import JraftApache
from lab.rocketmq.interop.stage import MESSAGES, Stage
from lab.rocketmq.interop.tools import CLI
from lab.rocketmq.roles import OURS
from lab.subjects.subject import Subject

NAMES = ("broker-1", "broker-2")


def from_dledger(stage: Stage) -> None:
    """Raises LabError."""
    _moved(stage, stage.tools.apache)


def from_jraft(stage: Stage) -> None:
    """Raises LabError."""
    _moved(stage, JraftApache(stage.tools.apache.release))


def _moved(stage: Stage, before: Subject) -> None:
    cluster, measured = stage.cluster, stage.measured
    cluster.start(OURS, "nameserver", "nameserver", settings.nameserver(cluster))
    theirs = settings.controller(cluster)
    _start_controller(stage, before, theirs)
    for name in NAMES:
        stage.start_broker(name, ours=False)
        waiting.wait_master(cluster)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.route_known()
    acknowledged = stage.produce(0)
    master = waiting.wait_master(cluster)
    cluster.stop("controller")
    ours: Settings = settings.controller(
        cluster, controllerStorePath=cluster.part("data", "controller") / "ours"
    )
    said = _found(cluster.configure("controller", ours), Path(str(theirs["controllerStorePath"])))
    measured.note("founded", "; ".join(said.splitlines()))
    _start_controller(stage, OURS, ours)
    now, members = waiting.wait_master(cluster), questions.in_sync(cluster.port("controller"), BROKER_NAME)
    measured.demand((now, members) == (master, [1, 2]), "the same master, epoch and set", f"{now} {members}")
    acknowledged |= stage.produce(MESSAGES)
    cluster.kill(stage.name_of(now.address))
    after = waiting.wait_master(cluster, after_epoch=now.epoch)
    measured.demand(
        (after.broker_id, after.epoch) == (3 - now.broker_id, now.epoch + 1),
        "after kill -9 of the master the other one, under its id, in the next masterEpoch",
        str(after),
    )
    for name in set(NAMES) - cluster.processes.keys():
        stage.start_broker(name, ours=False)
    waiting.wait_in_sync(cluster, (1, 2))
    stage.same_logs(NAMES, waiting.wait_same_end(cluster, *NAMES))
    stage.nothing_lost(acknowledged, "moved")


def _start_controller(stage: Stage, subject: Subject, values: Settings) -> None:
    stage.cluster.start(subject, "controller", "controller", values)
    serves = partial(questions.controller_serves, stage.cluster.port("controller"))
    stage.cluster.until(serves, "a controller that leads")


def _found(configuration: Path, folder: Path) -> str:
    """Have our group begin with a folder of theirs."""
    command = [*CLI, "controller", "import"]
    done = subprocess.run(
        [*command, "-c", str(configuration), "--from-folder", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LabError(f"no group is founded: {done.stderr.strip()}")
    return done.stdout
