"""Logical queues under load: they move from broker to broker, brokers come and go, clients see four queues.

Controller and name server in one process, each broker a set of its own; all that happens to the queues is
done by the commands that an operator types.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.cluster import CLUSTER_NAME, Cluster
from lab.errors import LabError
from lab.family import Story
from lab.processes import environment
from lab.rocketmq import settings
from lab.rocketmq.roles import OURS
from replispec.wire.rocketmq.constants import LOGICAL_QUEUE_BROKER, UNDECIDED

TOPIC, OTHER = "OrdersTopic", "OtherTopic"
FIRST, SECOND, THIRD = "broker1", "broker2", "broker3"
QUEUES: Final = 4
BETWEEN_S, SETTLED_S, IDLE_S = 0.01, 1.5, 4
COMMAND_S, END_S, EXPIRES_S = 60, 30, 60
FILE_BYTES: Final = 64 * 1024
ALL_HOURS: Final = ";".join(f"{hour:02}" for hour in range(24))
CLI: Final = (sys.executable, "-P", "-m", "replispec.cli")
FILLER_BYTES: Final = 8_000


def play(cluster: Cluster, story: Story) -> None:
    """Every table of the proposal that a life like this has, and what clients saw of it. Raises LabError."""
    _start(cluster, story)
    tables = _Tables(cluster, story)
    _admin(cluster, "updateTopic", "-t", OTHER, "-b", cluster.address(FIRST), "-r", "1", "-w", "1")
    _admin(cluster, "updateTopic", "-t", TOPIC, "-c", CLUSTER_NAME, "-r", "2", "-w", "2", "-lq", "true")
    tables.show("two queues at each of two brokers are four logical ones", {"0": "Normal", "3": "Normal"})
    with clients(cluster) as (sender, reader):
        story.tell("a producer and a consumer begin")
        time.sleep(SETTLED_S)
        _migrate(cluster, 0, SECOND)
        tables.show(f"0 was moved to {SECOND}: {FIRST} is read, and not written", {"0": "ReadOnly"})
        tables.wait(f"{FIRST} has deleted its messages of 0", {"0": "Expired"})
        time.sleep(SETTLED_S)
        _migrate(cluster, 0, FIRST)
        tables.show(f"0 came back, and takes its expired message queue of {FIRST} again", {})
        _start_broker(cluster, THIRD)
        for index in (2, 3):
            _migrate(cluster, index, THIRD)
        tables.show(f"{THIRD} has joined, and takes 2 and 3 over from {SECOND}", {})
        time.sleep(SETTLED_S)
        _drain(cluster, story, tables)
        time.sleep(SETTLED_S)
        sender.stop()
        story.tell(f"the producer ends: {sender.sent} messages")
        reader.wait()
    story.tell(_judged(sender.answers(), reader.messages()))


# ---- the cluster ---------------------------------------------------------------------------------


def _start(cluster: Cluster, story: Story) -> None:
    values = {**settings.controller(cluster), **_tap(cluster, "nameserver")}
    values |= {**settings.nameserver(cluster), "enableControllerInNamesrv": "true"}
    cluster.start(OURS, "nameserver", "nameserver", values)
    # It deletes what is old as soon as a file is full, so that nobody waits for hours.
    young = {"fileReservedTime": 0, "deleteWhen": ALL_HOURS, "cleanResourceInterval": 5_000}
    _start_broker(cluster, FIRST, **young)
    _start_broker(cluster, SECOND)
    story.tell(f"controller and name server, {FIRST} and {SECOND}")


def _start_broker(cluster: Cluster, name: str, **more: object) -> None:
    values = settings.broker(
        cluster, name, brokerName=name, mappedFileSizeCommitLog=FILE_BYTES, **_tap(cluster, name), **more
    )
    cluster.start(OURS, "broker", name, values)
    cluster.until(lambda: _is_known(cluster, name) or None, f"{name} at the name server")


def _is_known(cluster: Cluster, name: str) -> bool:
    said = _said(cluster, "clusterList", "--format", "json")
    return said.returncode == 0 and name in said.stdout


def _tap(cluster: Cluster, name: str) -> settings.Settings:
    return {"tapFile": cluster.part("tap") / f"{name}.pcap", "tapSide": "accepted"}


# ---- commands ------------------------------------------------------------------------------------


def _variables(cluster: Cluster) -> Mapping[str, str]:
    return environment(NAMESRV_ADDR=cluster.address("nameserver"))


def _said(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*CLI, "admin", *words]
    return subprocess.run(
        command, env=_variables(cluster), capture_output=True, text=True, timeout=COMMAND_S, check=False
    )


def _admin(cluster: Cluster, *words: str) -> str:
    """A command that has to do it. Raises LabError."""
    said = _said(cluster, *words)
    if said.returncode:
        raise LabError(f"{' '.join(words)}: {said.stderr.strip()}")
    return said.stdout


def _migrate(cluster: Cluster, index: int, target: str) -> None:
    _admin(cluster, "migrateTopicLogicalQueue", "-t", TOPIC, "-i", str(index), "-b", target)


def _drain(cluster: Cluster, story: Story, tables: _Tables) -> None:
    """The first broker leaves: what it writes moves away, and it stops when nothing of it is read."""
    drained = _said(cluster, "drainBroker", "-b", FIRST)
    tables.show(f"{FIRST} is drained: it writes nothing", {"1": "ReadOnly"})
    until_s = time.monotonic() + EXPIRES_S
    while drained.returncode:
        if time.monotonic() > until_s:
            raise LabError(f"{FIRST} may not stop: {drained.stderr.strip()}")
        _fill(cluster)
        drained = _said(cluster, "drainBroker", "-b", FIRST)
    story.tell(drained.stdout.strip())
    cluster.stop(FIRST)
    tables.show(f"{FIRST} has stopped", {})


def _fill(cluster: Cluster) -> None:
    """Messages of another topic at the first broker, which make it delete older ones."""
    words = ("produce", "-t", OTHER, "--count", str(2 * FILE_BYTES // FILLER_BYTES), "-q")
    said = subprocess.run(
        [*CLI, *words, "--body", "x" * FILLER_BYTES],
        env=_variables(cluster),
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    if said.returncode:
        raise LabError(f"{OTHER}: {said.stderr.strip()}")


@dataclass(slots=True)
class _Tables:
    """The table of the topic, as it is after each step."""

    cluster: Cluster
    story: Story

    def show(self, what: str, wanted: Mapping[str, str]) -> None:
        """Print it. `wanted`: states of which some segment of an index has to be. Raises LabError."""
        text = self._look()
        if not _fits(text, wanted):
            raise LabError(f"{what}: the table is another one:\n{text}")
        self.story.tell(what)
        for line in text.splitlines():
            print(f"          {line}", flush=True)

    def wait(self, what: str, wanted: Mapping[str, str]) -> None:
        """Print it as soon as it is so; old messages go when their file is full, and other topics fill it.
        Raises LabError."""
        until_s = time.monotonic() + EXPIRES_S
        while not _fits(self._look(), wanted) and time.monotonic() < until_s:
            _fill(self.cluster)
        self.show(what, wanted)

    def _look(self) -> str:
        return _admin(self.cluster, "queryTopicLogicalQueueMapping", "-t", TOPIC, "-m")


def _fits(text: str, wanted: Mapping[str, str]) -> bool:
    """Whether segments of these states are there, and every logical queue is written."""
    rows = [line.split() for line in text.splitlines()[1:]]
    found = {(row[2].partition("(")[0], row[3]) for row in rows}
    written = {index for index, state in found if state == "Normal"}
    return wanted.items() <= found and len(written) == QUEUES


# ---- clients -------------------------------------------------------------------------------------


class Sender(threading.Thread):
    """`replispec produce`, which is given a number every now and then."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._path = cluster.part("clients") / "sent.jsonl"
        self._process = _client(cluster, self._path, "produce", "--lines")
        self._stopping = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """Until stopped."""
        assert self._process.stdin is not None
        while not self._stopping.wait(BETWEEN_S):
            self._process.stdin.write(b"%d\n" % self.sent)
            self._process.stdin.flush()
            self.sent += 1
        self._process.stdin.close()

    def stop(self) -> None:
        """End after the message under way."""
        self._stopping.set()
        self.join()
        self._process.wait(END_S)

    def answers(self) -> Sequence[Mapping[str, object]]:
        """What came of each message."""
        return _lines(self._path)

    def end(self) -> None:
        """At once."""
        self._stopping.set()
        _end(self._process)


class Reader:
    """`replispec consume`, which ends when nothing came for a while."""

    def __init__(self, cluster: Cluster) -> None:
        self._path = cluster.part("clients") / "read.jsonl"
        self._process = _client(cluster, self._path, "consume", "--idle", str(IDLE_S), "--group", "orders")

    def wait(self) -> None:
        """Until it has read everything. Raises LabError."""
        if self._process.wait(END_S):
            raise LabError(f"the consumer ended with {self._process.returncode}")

    def messages(self) -> Sequence[Mapping[str, object]]:
        """What it read."""
        return _lines(self._path)

    def end(self) -> None:
        """At once."""
        _end(self._process)


@contextmanager
def clients(cluster: Cluster) -> Iterator[tuple[Sender, Reader]]:
    """Both, until the block ends."""
    with ExitStack() as stack:
        sender = Sender(cluster)
        stack.callback(sender.end)
        sender.start()
        reader = Reader(cluster)
        stack.callback(reader.end)
        yield sender, reader


def _client(cluster: Cluster, path: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [*CLI, words[0], "-t", TOPIC, "--format", "json", *words[1:]]
    with path.open("wb") as output, path.with_suffix(".err").open("wb") as errors:
        return subprocess.Popen(
            command, env=_variables(cluster), stdin=subprocess.PIPE, stdout=output, stderr=errors
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()


def _lines(path: Path) -> Sequence[Mapping[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- what must be so -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Queue:
    """What was read of a logical queue."""

    offsets: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


def _judged(sent: Sequence[Mapping[str, object]], read: Sequence[Mapping[str, object]]) -> str:
    """Every message was acknowledged, and read once, in order, at the offset that it was given. Raises
    LabError."""
    failed = [each for each in sent if each["status"] != "SEND_OK"]
    _demand(not failed, f"{len(failed)} of {len(sent)} messages were not stored, the first: {failed[:1]}")
    queues: dict[int, _Queue] = {}
    for each in read:
        _demand(each["broker"] == LOGICAL_QUEUE_BROKER, f"a queue of another broker was read: {each}")
        queue = queues.setdefault(_number(each["queue"]), _Queue())
        queue.offsets.append(_number(each["offset"]))
        queue.numbers.append(_number(each["body"]))
    _demand(sorted(queues) == list(range(QUEUES)), f"the consumer saw the queues {sorted(queues)}")
    for index, queue in queues.items():
        whole = list(range(len(queue.offsets)))
        _demand(queue.offsets == whole, f"queue {index} was read with a hole, or twice: {queue.offsets}")
        _demand(queue.numbers == sorted(set(queue.numbers)), f"queue {index} was read out of order")
    places = {
        number: (index, offset)
        for index, queue in queues.items()
        for offset, number in zip(queue.offsets, queue.numbers, strict=True)
    }
    _demand(sorted(places) == list(range(len(sent))), f"{len(places)} of {len(sent)} messages were read")
    undecided = 0
    for each in sent:
        told = _number(each["queue"]), _number(each["offset"])
        undecided += told[1] == UNDECIDED
        place = places[_number(each["number"])]
        _demand(place[0] == told[0], f"a message is in another queue than it was told: {each}")
        _demand(told[1] in {UNDECIDED, place[1]}, f"a message is elsewhere than it was told: {each}")
    return (
        f"{len(sent)} messages acknowledged, {undecided} of them before their offset was decided; all read"
        f" once, in order, from {QUEUES} queues without a hole"
    )


def _number(value: object) -> int:
    return int(str(value))


def _demand(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise LabError(otherwise)
