"""`python -m lab.rocketmq.stores`: stores that brokers of Apache RocketMQ leave, opened with our broker.

For each release: one of a broker in controller mode, restarted once and killed, and one of a broker without
a controller that ended in order, which has no epochs. Each is packed with what Java's producer was told,
then started by our broker, of which everything is read back.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import Story
from lab.interop.measured import Measured
from lab.ports import LOOPBACK
from lab.rocketmq import questions, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.stage import TOPIC, Stage
from lab.rocketmq.interop.tools import Tools
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import read_queues
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.codes import RequestCode

RELEASES = ("5.4.0", "5.5.0")
EPOCHS, PLAIN = "epochs", "plain"
FILE_BYTES = 1024 * 1024
BROKER = "broker"
# More than one file of log.
MESSAGES, BODY_BYTES, DELAYED = 24, 30_000, 3
# A log that was asked for so often, so many seconds apart, and grew no more.
STILL, STILL_POLL_S = 10, 0.5
# What is large and of no use without its broker.
LEFT_OUT = ("timerwheel", "timerlog", "rocksdbstore", "lock", "index")


def make(release: str, kind: str, out: Path, story: Story) -> Path:
    """Play one, pack its store, open it with ours; the archive. Raises LabError."""
    folder = out / f"{release}-{kind}"
    Cluster.remove_earlier(folder)
    with Cluster(folder) as cluster:
        stage = Stage(cluster, Tools(cluster, Apache(release)), Measured(kind))
        stage.start_coordinator(ours=True)
        truth = _epochs(stage) if kind == EPOCHS else _plain(stage)
        archive = _pack(cluster, out / f"apache-{release}-{kind}.tar.xz", truth)
        story.tell(f"{archive.name}: {archive.stat().st_size} bytes, log of {truth['end']}")
        _opened(stage, truth)
        story.tell(f"{archive.name}: our broker is master on it, and everything is read back")
    return archive


def _epochs(stage: Stage) -> Mapping[str, object]:
    cluster = stage.cluster
    lines = []
    for start in range(2):
        stage.start_broker(BROKER, ours=False, mappedFileSizeCommitLog=FILE_BYTES)
        waiting.wait_master(cluster, after_epoch=start)
        stage.route_known()
        lines += _sent(stage, start * MESSAGES)
        if not start:
            cluster.stop(BROKER)
    said = questions.epochs(cluster.port(BROKER))
    epochs = [[each.epoch, each.start_offset] for each in said.epoch_list or ()]
    truth = {"end": _end(stage), "epochs": epochs, "messages": lines}
    cluster.kill(BROKER)
    return truth


def _plain(stage: Stage) -> Mapping[str, object]:
    stage.start_broker(
        BROKER,
        ours=False,
        mappedFileSizeCommitLog=FILE_BYTES,
        enableControllerMode="false",
        controllerAddr="",
        brokerId=0,
        brokerRole="ASYNC_MASTER",
    )
    stage.route_known()
    lines = _sent(stage, 0) + _sent(stage, MESSAGES)
    truth = {"end": _end(stage), "epochs": [], "messages": lines}
    stage.cluster.stop(BROKER)
    return truth


def _sent(stage: Stage, first: int) -> list[list[object]]:
    """Queue, position and key of what Java's producer was told is stored."""
    told = []
    for at, count, how in ((first, MESSAGES - DELAYED, ""), (first + MESSAGES - DELAYED, DELAYED, "delayed")):
        arguments = (stage.nameserver, TOPIC, str(at), str(count), str(BODY_BYTES), "0", how)
        lines = stage.tools.client("produce", *arguments)
        if len(figures.acknowledged(lines)) != count:
            raise LabError(f"{count} messages were sent: {lines}")
        # Where a delayed one lies is told by nobody.
        told += [[line["queue"], line["offset"], line["key"]] for line in lines if not how]
    return told


def _end(stage: Stage) -> int:
    """Where the log ends when delayed messages were delivered and nothing comes any more."""
    port = stage.cluster.port(BROKER)

    def end() -> int:
        with Peer(LOOPBACK, port) as peer:
            table = RuntimeInfo.decode(peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table or {}
        return int(table["commitLogMaxOffset"] or 0)

    seen: list[int] = []

    def still() -> int | None:
        seen.append(end())
        return seen[-1] if len(seen) > STILL and len(set(seen[-STILL:])) == 1 else None

    stage.cluster.poll_s = STILL_POLL_S
    return stage.cluster.until(still, "a log that grows no more")


def _pack(cluster: Cluster, path: Path, truth: Mapping[str, object]) -> Path:
    store = cluster.folder / "data" / BROKER
    (store / "truth.json").write_text(json.dumps(truth) + "\n")
    with lzma.open(path, "w", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for each in sorted(store.iterdir()):
            if each.name not in LEFT_OUT:
                archive.add(each, each.name)
    (store / "truth.json").unlink()
    return path


def _opened(stage: Stage, truth: Mapping[str, object]) -> None:
    """Start ours on the store; every message is where Java's producer was told. Raises LabError."""
    stage.start_broker(BROKER, ours=True, mappedFileSizeCommitLog=FILE_BYTES)
    master = waiting.wait_master(stage.cluster, after_epoch=len(_listed(truth["epochs"])))

    def read() -> dict[tuple[int, int], str] | None:
        found = read_queues(master.address, TOPIC, questions.QUEUES)
        keys = {(queue, at): body.split()[0].decode() for queue in found for at, body in found[queue]}
        return keys if len(keys) >= len(_listed(truth["messages"])) else None

    keys = stage.cluster.until(read, "what Java stored, read of our broker")
    for queue, offset, key in _listed(truth["messages"]):
        if keys.get((queue, offset)) != key:
            raise LabError(f"{key} is not at {offset} of queue {queue}")


def _listed(value: object) -> list[list[Any]]:
    assert isinstance(value, list)
    return value


def main() -> int:
    """Exit code 0: all were made, and opened."""
    parser = argparse.ArgumentParser(prog="python -m lab.rocketmq.stores", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out/stores"), help="archives and clusters (%(default)s)"
    )
    parser.add_argument("--release", choices=RELEASES, action="append", help="not given: all")
    arguments = parser.parse_args()
    out = arguments.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    story = Story()
    try:
        for release in arguments.release or RELEASES:
            for kind in (EPOCHS, PLAIN):
                make(release, kind, out, story)
    except LabError as error:
        print(f"stores: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
