"""Folders of logs change hands between ours and a real Kafka 2.8.2: what one wrote the other reads.

    VENV/bin/python -m lab.kafka.folders LIBS [OUT]

`LIBS` holds the jars of kafka_2.13 and kafka-tools 2.8.2; OUT (out/folders) what is left of a run. Stories:

written     We write three partitions in many segments, two epochs, a torn tail behind one of them. Kafka's
            DumpLogSegments finds every batch and index valid; a broker takes the folder, serves every record
            to Kafka's console consumer, appends some and is killed (kill -9); we read what it left.
continued   The folder of that killed broker: we append to it and leave it in order; the broker takes it again
            and serves all. Then we take what it left in order.

Exit code 0: all as demanded; 1: not, with the first thing that was not.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lab.kafka.seen import free_port, start, wait
from replispec.runtime.kafka.batches import batch_of, batches_in, records_of
from replispec.runtime.kafka.log import LogFolder, PartitionLog, PartitionLogSettings
from replispec.runtime.storage import Stores
from replispec.runtime.storage.disk_shell import DiskFiles

NOW_MS: Final = 1_700_000_000_000
TOPIC: Final = "t"
PARTITIONS: Final = 3
COUNT: Final = 2_000
SENT: Final = [f"more {number}" for number in range(100)]
SETTINGS: Final = PartitionLogSettings(
    segment_bytes=64 * 1024,
    roll_ms=10**12,
    index_interval_bytes=4096,
    retention_ms=None,
    retention_bytes=None,
    appends_time=False,
)
Records = dict[int, list[tuple[int, bytes]]]


class NotAsDemanded(Exception):
    """What was seen is not what must be."""


@contextlib.contextmanager
def ours(folder: Path, *, in_order: bool = True) -> Iterator[LogFolder]:
    """The folder in our hands, left in order or as a crash leaves it."""
    files = DiskFiles(folder)
    logs = LogFolder(files, SETTINGS, NOW_MS)
    write(logs, files)
    yield logs
    Stores(files=files).carry_out(logs.stop_write() if in_order else logs.begin_write())
    files.close()


def write(logs: LogFolder, files: DiskFiles) -> None:
    """Bring everything to the disk."""
    Stores(files=files).carry_out(logs.begin_write())
    logs.end_write()


def put(log: PartitionLog, count: int, epoch: int) -> None:
    """Append so many records, a few a batch, as their leader in an epoch."""
    number = log.end
    while number < log.end + count and count > 0:
        size = min(1 + number % 7, count)
        values = [
            (NOW_MS + at, b"k%d" % at, b"v%d" % at + b"." * (at % 300)) for at in range(number, number + size)
        ]
        log.append_as_leader(batch_of(values), epoch, NOW_MS)
        number, count = number + size, count - size


def records(logs: LogFolder) -> Records:
    """Every record of every partition: its offset and its value."""
    found: Records = {}
    for (_, partition), log in logs.logs.items():
        found[partition], at = [], log.start
        while at < log.end:
            for batch in batches_in(data := log.read(at, 1 << 20, log.end), may_be_cut=False):
                for each in records_of(data, batch):
                    at = batch.head.base_offset + each.offset_delta + 1
                    found[partition].append((at - 1, each.value or b""))
    return found


def dump(libs: Path, folder: Path) -> int:
    """How many batches Kafka's own reader of segments calls valid; in their indexes it finds no fault."""
    logs = sorted(str(each) for each in folder.glob(f"{TOPIC}-*/*.log"))
    indexes = sorted(str(each) for each in folder.glob(f"{TOPIC}-*/*index"))
    said = java(
        libs, "kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join([*logs, *indexes])
    )
    valid = said.count("isvalid: true")
    if "isvalid: false" in said or "Mismatches" in said or "not valid" in said or "Exception" in said:
        raise NotAsDemanded(f"DumpLogSegments: {said[-2000:]}")
    return valid


def java(libs: Path, main: str, *arguments: str, given: bytes = b"") -> str:
    """What a program of Kafka's prints. Raises NotAsDemanded when it fails."""
    command = ["java", "-Xmx256m", "-cp", f"{libs}/*", main, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, timeout=180, check=False)
    if done.returncode:
        raise NotAsDemanded(f"{main}: exit code {done.returncode}: {done.stderr.decode()[-2000:]}")
    return done.stdout.decode()


class RealBroker:
    """ZooKeeper and one broker of Kafka on a folder of logs, the topic's partitions assigned to it."""

    def __init__(self, libs: Path, work: Path, folder: Path) -> None:
        self.libs = libs
        self.port, keeper = free_port(), free_port()
        work.mkdir(parents=True, exist_ok=True)
        store = {
            "dataDir": work / "zk", "clientPort": keeper, "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false", "tickTime": 500,
        }  # fmt: skip
        broker = {
            "broker.id": 1, "listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "log.dirs": folder,
            "zookeeper.connect": f"127.0.0.1:{keeper}", "zookeeper.session.timeout.ms": 6000,
            "inter.broker.protocol.version": "1.0", "log.message.format.version": "1.0",
            "controlled.shutdown.enable": "false", "auto.create.topics.enable": "false",
            "log.segment.bytes": SETTINGS.segment_bytes, "log.retention.hours": -1,
            "offsets.topic.replication.factor": 1,
        }  # fmt: skip
        self._processes = [start(libs, work, "org.apache.zookeeper.server.quorum.QuorumPeerMain", store)]
        self._processes.append(start(libs, work, "kafka.Kafka", broker))
        assignment = ",".join(["1"] * PARTITIONS)
        topics = ("kafka.admin.TopicCommand", "--zookeeper", f"127.0.0.1:{keeper}")
        asked = ("--describe", "--entity-type", "brokers", "--entity-name", "1")
        config = ("kafka.admin.ConfigCommand", "--zookeeper", f"127.0.0.1:{keeper}")
        wait("the broker", lambda: "1" in java(libs, *config, *asked))
        java(libs, *topics, "--create", "--topic", TOPIC, "--replica-assignment", assignment)

    def read(self, partition: int, count: int) -> list[bytes]:
        """The values that Kafka's console consumer reads of a partition, so many of them."""
        said = java(self.libs, "kafka.tools.ConsoleConsumer", "--bootstrap-server", f"127.0.0.1:{self.port}",
            "--topic", TOPIC, "--partition", str(partition), "--offset", "earliest", "--max-messages",
            str(count), "--timeout-ms", "60000")  # fmt: skip
        return [line.encode() for line in said.split("\n")[:-1]]

    def send(self, lines: list[str]) -> None:
        """Have Kafka's console producer send lines, acknowledged by all."""
        data = "".join(f"{each}\n" for each in lines).encode()
        java(self.libs, "kafka.tools.ConsoleProducer", "--bootstrap-server", f"127.0.0.1:{self.port}",
            "--topic", TOPIC, "--request-required-acks", "all", given=data)  # fmt: skip

    def end(self, how: signal.Signals) -> None:
        """End the broker in a way, then ZooKeeper."""
        self._processes[1].send_signal(how)
        self._processes[1].wait(60)
        self._processes[0].kill()
        self._processes[0].wait(60)


def served(broker: RealBroker, expected: Records) -> int:
    """See that the broker serves exactly these records; how many."""
    for partition, wanted in expected.items():
        read = broker.read(partition, len(wanted))
        if read != [value for _, value in wanted]:
            raise NotAsDemanded(
                f"{TOPIC}-{partition}: the broker served {len(read)} of {len(wanted)}, or others"
            )
    return sum(map(len, expected.values()))


def written(libs: Path, out: Path) -> str:
    """Ours, then Kafka's, which is killed, then ours."""
    folder = out / "logs"
    with ours(folder, in_order=False) as logs:
        for partition in range(PARTITIONS):
            log = logs.make(TOPIC, partition, NOW_MS)
            put(log, COUNT, 0)
            put(log, COUNT // 2, 3)
            log.high_watermark = log.end
        logs.checkpoint()
        expected = records(logs)
    valid = dump(libs, folder)
    last = max((folder / f"{TOPIC}-0").glob("*.log"))
    with last.open("ab") as file:
        file.write(last.read_bytes()[:200])
    broker = RealBroker(libs, out / "first", folder)
    try:
        count = served(broker, expected)
        broker.send(SENT)
    finally:
        broker.end(signal.SIGKILL)
    with ours(folder) as logs:
        found = records(logs)
        torn = [each for each in logs.findings if each.torn_bytes]
        epochs = [len(log.epochs.entries) for log in logs.logs.values()]
    if any(found[each][: len(expected[each])] != expected[each] for each in expected):
        raise NotAsDemanded("a record that we wrote is another one after Kafka had the folder")
    values = {value for each in found.values() for _, value in each}
    missing = [each for each in SENT if each.encode() not in values]
    if missing:
        raise NotAsDemanded(f"{len(missing)} of {len(SENT)} records that Kafka acknowledged are missing")
    return (
        f"{valid} batches valid, {count} records served, all {len(SENT)} of Kafka's read after kill -9,"
        f" {len(torn)} torn logs, epochs {epochs}"
    )


def continued(libs: Path, out: Path) -> str:
    """Ours after the kill, then Kafka's in order, then ours."""
    folder = out / "logs"
    with ours(folder) as logs:
        for log in logs.logs.values():
            put(log, 500, (log.epochs.newest or 0) + 1)
            log.high_watermark = log.end
        expected = records(logs)
    valid = dump(libs, folder)
    broker = RealBroker(libs, out / "second", folder)
    try:
        count = served(broker, expected)
    finally:
        broker.end(signal.SIGTERM)
    with ours(folder) as logs:
        if not logs.was_left_in_order:
            raise NotAsDemanded("Kafka ended in order, and we do not see it")
        if records(logs) != expected:
            raise NotAsDemanded("a record is another one after Kafka had the folder")
    return f"{valid} batches valid, {count} records served and read again"


def main(libs: Path, out: Path) -> int:
    """Play both stories, one after the other, on one folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for story in (written, continued):
        try:
            print(f"{story.__name__}: {story(libs, out)}", flush=True)
        except NotAsDemanded as error:
            print(f"{story.__name__}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "out/folders")))
