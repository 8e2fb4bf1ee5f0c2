"""`make kills`: processes of ours are killed with -9 at random moments, again and again, under load.

A controller with its name server, two brokers and a sender; each kill hits one process (now and then two)
and the cluster must acknowledge again before the next. At the end every acknowledged message is read
back, every identity is what it was, and the logs are the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from pathlib import Path

from lab import questions, settings
from lab.cluster import BROKER_NAME, Cluster
from lab.errors import LabError
from lab.logs import one_digest
from lab.peer import Peer
from lab.ports import LOOPBACK
from lab.reader import read_topic
from lab.subjects.ours import OURS
from lab.waiting import wait_in_sync, wait_master, wait_same_end
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.constants import IDENTITY_FILE

TOPIC = "KillTopic"
BROKERS = ("broker-1", "broker-2")
PATIENCE_S = 30.0


class LoadSender(threading.Thread):
    """Sends one message after the other to whoever is master, and keeps what was acknowledged."""

    def __init__(self, controller: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[bytes] = []
        self.sent = 0
        self._controller = controller
        self._stopping = threading.Event()

    def run(self) -> None:
        """Until stopped: a master that is gone is looked up again."""
        while not self._stopping.wait(0.02):
            try:
                self._send_until_refused()
            except (OSError, RemoteProtocolError):
                continue

    def stop(self) -> None:
        """End after the message under way."""
        self._stopping.set()
        self.join()

    def _send_until_refused(self) -> None:
        master = questions.master(self._controller, BROKER_NAME)
        if master is None or not master.broker_id:
            return
        with Peer(LOOPBACK, int(master.address.rpartition(":")[2])) as peer:
            sender = questions.Sender(peer, TOPIC)
            while not self._stopping.is_set():
                body = f"message {self.sent:06d}".encode()
                self.sent += 1
                code, _ = sender.send(body, queue=self.sent % questions.QUEUES)
                if code != ResponseCode.SUCCESS:
                    return
                self.acknowledged.append(body)


def main() -> int:
    """Exit code 0: nothing acknowledged was lost, and every process came back as who it was."""
    parser = argparse.ArgumentParser(prog="make kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/kills"), help="in place of an earlier run's")
    arguments = parser.parse_args()
    began_s = time.monotonic()
    try:
        Cluster.remove_earlier(arguments.out)
        with Cluster(arguments.out) as cluster:
            told = _play(cluster, arguments.kills, random.Random(arguments.seed))
    except LabError as error:
        print(f"kills: seed {arguments.seed}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kills: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    print(f"{told} in {time.monotonic() - began_s:.0f} s (seed {arguments.seed})")
    return 0


def _play(cluster: Cluster, kills: int, chance: random.Random) -> str:
    for name in ("controller", *BROKERS):
        _start(cluster, name)
    wait_in_sync(cluster, (1, 2))
    identities = {name: _identity(cluster, name) for name in BROKERS}
    sender = LoadSender(cluster.port("controller"))
    sender.start()
    done = {"controller": 0, **dict.fromkeys(BROKERS, 0)}
    try:
        while sum(done.values()) < kills:
            time.sleep(chance.uniform(0.0, 0.4))
            victims = chance.sample(tuple(done), 2 if chance.random() < 0.2 else 1)
            for name in victims:
                cluster.kill(name)
                done[name] += 1
            time.sleep(chance.uniform(0.0, 0.3))
            for name in victims:
                _start(cluster, name)
            _wait_for_more(cluster, sender)
            for name in BROKERS:
                _demand(_identity(cluster, name) == identities[name], f"{name} has another identity")
    finally:
        sender.stop()
    return _judge(cluster, sender, done)


def _judge(cluster: Cluster, sender: LoadSender, done: dict[str, int]) -> str:
    wait_in_sync(cluster, (1, 2))
    end = wait_same_end(cluster, *BROKERS)
    one_digest(cluster, BROKERS, end)
    master = wait_master(cluster)
    seen = read_topic(master.address, TOPIC, questions.QUEUES)
    lost = [body.decode() for body in sender.acknowledged if body not in seen]
    _demand(not lost, f"{len(lost)} acknowledged messages are lost: {lost[:3]}")
    return (
        f"{sum(done.values())} kills {done}: {len(sender.acknowledged)} of {sender.sent} messages "
        f"acknowledged, all of them read back; epoch {master.epoch}; both logs the same {end} bytes"
    )


def _start(cluster: Cluster, name: str) -> None:
    if name == "controller":
        values = settings.nameserver(cluster) | settings.controller(cluster)
        values |= {"listenPort": cluster.port("nameserver"), "enableControllerInNamesrv": "true"}
        cluster.start(OURS, "nameserver", name, values)
    else:
        cluster.start(OURS, "broker", name, settings.broker(cluster, name))


def _wait_for_more(cluster: Cluster, sender: LoadSender) -> None:
    before = len(sender.acknowledged)

    def reached() -> bool | None:
        return len(sender.acknowledged) > before + 3 or None

    cluster.until(reached, "messages acknowledged after a kill", patience_s=PATIENCE_S)


def _identity(cluster: Cluster, name: str) -> bytes:
    place = cluster.folder / "data" / name / IDENTITY_FILE
    _demand(place.is_file(), f"{name} has no identity file")
    return place.read_bytes()


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise LabError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
