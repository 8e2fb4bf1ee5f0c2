"""What is killed: a controller with its name server, and two brokers, while messages are sent."""

from __future__ import annotations

from collections.abc import Mapping

from lab.cluster import BROKER_NAME, Cluster
from lab.errors import LabError
from lab.family import LoadSender
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings
from lab.rocketmq.logs import one_digest
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import read_topic
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import wait_in_sync, wait_master, wait_same_end
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import IDENTITY_FILE

TOPIC = "KillTopic"
CONTROLLER = "controller"
BROKERS = ("broker-1", "broker-2")


class Sender(LoadSender):
    """Sends to whoever the controller calls master."""

    def __init__(self, controller: int) -> None:
        super().__init__()
        self._controller = controller

    def send_until_refused(self) -> None:
        """Ask who is master and send to it."""
        master = questions.master(self._controller, BROKER_NAME)
        if master is None or not master.broker_id:
            return
        with Peer(LOOPBACK, int(master.address.rpartition(":")[2])) as peer:
            sender = questions.Sender(peer, TOPIC)
            while not self.is_stopping:
                body = f"message {self.sent:06d}".encode()
                self.sent += 1
                code, _ = sender.send(body, queue=self.sent % questions.QUEUES)
                if code != ResponseCode.SUCCESS:
                    return
                self.acknowledged.append(body)


class KilledBrokers:
    """See KilledCluster."""

    names = (CONTROLLER, *BROKERS)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def start(self, name: str) -> None:
        """The controller holds the name server too."""
        cluster = self._cluster
        if name == CONTROLLER:
            values = settings.nameserver(cluster) | settings.controller(cluster)
            values |= {"listenPort": cluster.port("nameserver"), "enableControllerInNamesrv": "true"}
            cluster.start(OURS, "nameserver", name, values)
        else:
            cluster.start(OURS, "broker", name, settings.broker(cluster, name))

    def wait_whole(self) -> None:
        """Both brokers are in the SyncStateSet."""
        wait_in_sync(self._cluster, (1, 2))

    def identities(self) -> Mapping[str, bytes]:
        """The identity file of each broker."""
        return {name: self._identity(name) for name in BROKERS}

    def load(self) -> Sender:
        """A sender that asks this cluster's controller."""
        return Sender(self._cluster.port(CONTROLLER))

    def judged(self, sender: LoadSender) -> str:
        """Both logs are the same, and every message that was acknowledged is read back."""
        end = wait_same_end(self._cluster, *BROKERS)
        one_digest(self._cluster, BROKERS, end)
        master = wait_master(self._cluster)
        seen = read_topic(master.address, TOPIC, questions.QUEUES)
        lost = [body.decode() for body in sender.acknowledged if body not in seen]
        if lost:
            raise LabError(f"{len(lost)} acknowledged messages are lost: {lost[:3]}")
        return f"all of them read back; epoch {master.epoch}; both logs the same {end} bytes"

    def _identity(self, name: str) -> bytes:
        place = self._cluster.folder / "data" / name / IDENTITY_FILE
        if not place.is_file():
            raise LabError(f"{name} has no identity file")
        return place.read_bytes()
