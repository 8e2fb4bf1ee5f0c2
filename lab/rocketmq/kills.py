"""What is struck: a controller with its name server, and two brokers, while messages are sent and read."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lab.cluster import BROKER_NAME, Cluster
from lab.errors import LabError
from lab.family import KilledCluster, LoadSender
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings
from lab.rocketmq.histories import History
from lab.rocketmq.logs import one_digest
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import read_on, read_queues
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import wait_in_sync, wait_master, wait_same_end
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import IDENTITY_FILE

TOPIC = "KillTopic"
CONTROLLER = "controller"
BROKERS = ("broker-1", "broker-2")
# Shorter than the defaults, so that who stands still for some seconds is missed.
HEARTBEAT_MS, MISSED_MS, SCAN_MS = 300, 2_000, 500
# The log goes from file to file between two strikes. Messages are short.
SMALL_BYTES, LARGE_BYTES, MESSAGE_BYTES_MAX = 8_192, 1_048_576, 1_024
# Complaints of a history that are told.
SHOWN = 3


class Sender(LoadSender):
    """Sends to whoever the controller calls master, while a consumer reads from it."""

    def __init__(self, controller: int) -> None:
        super().__init__()
        self._controller = controller
        self.history = History()
        self._consumer = threading.Thread(target=self._consume, daemon=True)

    def start(self) -> None:
        """Send and read, both until stopped."""
        super().start()
        self._consumer.start()

    def stop(self) -> None:
        """End after what is under way."""
        super().stop()
        self._consumer.join()

    def send_until_refused(self) -> None:
        """Ask who is master and send to it."""
        with self._master() as peer:
            sender = questions.Sender(peer, TOPIC)
            while not self.is_stopping:
                body = f"message {self.sent:06d}".encode()
                self.sent += 1
                code, answer = sender.send(body, queue=self.sent % questions.QUEUES)
                if code != ResponseCode.SUCCESS or answer is None:
                    return
                self.acknowledged.append(body)
                self.history.acknowledge(body, (answer.queue_id or 0, answer.queue_offset or 0))

    def _consume(self) -> None:
        offsets = dict.fromkeys(range(questions.QUEUES), 0)
        while not self.wait_stopped():
            try:
                with self._master() as peer:
                    self._read(peer, offsets)
            except (OSError, RemoteProtocolError):
                continue

    def _read(self, peer: Peer, offsets: dict[int, int]) -> None:
        while not self.wait_stopped():
            for queue, offset in offsets.items():
                messages, offsets[queue] = read_on(peer, TOPIC, queue, offset)
                for at, body in messages:
                    self.history.consume((queue, at), body)

    def _master(self) -> Peer:
        """Raises OSError while there is none."""
        master = questions.master(self._controller, BROKER_NAME)
        if master is None or not master.broker_id:
            raise ConnectionRefusedError("no master")
        return Peer(LOOPBACK, int(master.address.rpartition(":")[2]))


class KilledBrokers(KilledCluster):
    """Two brokers under one controller, each acknowledgement by both."""

    names = (CONTROLLER, *BROKERS)

    def __init__(self, cluster: Cluster, flush: str, log_file_bytes: int, *, is_certain: bool) -> None:
        self._cluster = cluster
        self._flush = flush
        self._log_file_bytes = log_file_bytes
        self.is_certain = is_certain

    def start(self, name: str) -> None:
        """The controller holds the name server too."""
        cluster = self._cluster
        if name == CONTROLLER:
            values = settings.controller(cluster, scanNotActiveBrokerInterval=SCAN_MS)
            values = settings.nameserver(cluster) | values | {"listenPort": cluster.port("nameserver")}
            cluster.start(OURS, "nameserver", name, values | {"enableControllerInNamesrv": "true"})
        else:
            values = settings.broker(
                cluster,
                name,
                flushDiskType=self._flush,
                mappedFileSizeCommitLog=self._log_file_bytes,
                maxMessageSize=MESSAGE_BYTES_MAX,
                brokerHeartbeatInterval=HEARTBEAT_MS,
                controllerHeartBeatTimeoutMills=MISSED_MS,
            )
            cluster.start(OURS, "broker", name, values)

    def wait_whole(self) -> None:
        """Both brokers are in the SyncStateSet."""
        wait_in_sync(self._cluster, (1, 2))

    def folder(self, name: str) -> Path:
        """See KilledCluster."""
        return self._cluster.folder / "data" / name

    def identities(self) -> Mapping[str, bytes]:
        """The identity file of each broker."""
        return {name: self._identity(name) for name in BROKERS}

    def load(self) -> Sender:
        """A sender that asks this cluster's controller."""
        return Sender(self._cluster.port(CONTROLLER))

    def judged(self, sender: LoadSender) -> str:
        """Both logs are the same, and what was acknowledged and read lies where it was said to."""
        assert isinstance(sender, Sender)
        end = wait_same_end(self._cluster, *BROKERS)
        one_digest(self._cluster, BROKERS, end)
        master = wait_master(self._cluster)
        complaints = sender.history.complaints(read_queues(master.address, TOPIC, questions.QUEUES))
        if complaints:
            raise LabError(f"{len(complaints)} complaints: {'; '.join(complaints[:SHOWN])}")
        read = len(sender.history.consumed)
        return (
            f"all of them where they were acknowledged, {read} where they were read; queues without a gap; "
            f"epoch {master.epoch}; both logs the same {end} bytes"
        )

    def _identity(self, name: str) -> bytes:
        place = self.folder(name) / IDENTITY_FILE
        if not place.is_file():
            raise LabError(f"{name} has no identity file")
        return place.read_bytes()


KILLED = {
    "SYNC_FLUSH": partial(KilledBrokers, flush="SYNC_FLUSH", log_file_bytes=SMALL_BYTES, is_certain=True),
    "ASYNC_FLUSH": partial(KilledBrokers, flush="ASYNC_FLUSH", log_file_bytes=LARGE_BYTES, is_certain=False),
}
"""By flushing: with ASYNC_FLUSH one machine at a time may lose its power (decision 69)."""
