"""Clients of a cluster that a page is followed on: what was acknowledged, and what is read."""

from __future__ import annotations

from typing import Final

from lab.poll import until
from lab.rocketmq import questions
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import read_topic
from replispec.wire.rocketmq.codes import ResponseCode
from tests.operate.machines import Machines

TOPIC, SET, CONTROLLER = "OperateTopic", "broker-a", 9878
WAIT_S: Final = 60.0


class Clients:
    """Who sends and reads, wherever the master is. `controllers`: machines that are asked who that is."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self.controllers = ["m1", "m2", "m3"]
        self.acknowledged: list[bytes] = []
        self._number = 0

    def master(self) -> str | None:
        """Its ADDRESS:PORT, if a controller knows one."""
        for each in self.controllers:
            host, port = self._machines.address(each, CONTROLLER)
            try:
                found = questions.master(port, SET, host)
            except OSError:
                continue
            if found is not None and found.address:
                return found.address
        return None

    def send(self, count: int) -> None:
        """So many messages are acknowledged, each before the next one is sent."""
        with self._machines.as_client():
            for _ in range(count):
                until(self._sent, waiting_for="a message that is acknowledged", patience_s=WAIT_S)

    def _sent(self) -> bool | None:
        address = self.master()
        if address is None:
            return None
        self._number += 1
        body = b"message %d" % self._number
        host, _, port = address.rpartition(":")
        with Peer(host, int(port)) as peer:
            code, _ = questions.Sender(peer, TOPIC).send(body, queue=self._number % questions.QUEUES)
        if code != ResponseCode.SUCCESS:
            return None
        self.acknowledged.append(body)
        return True

    def lost(self) -> set[bytes]:
        """What was acknowledged, and is not read from the master."""

        def read() -> set[bytes] | None:
            address = self.master()
            found = read_topic(address, TOPIC, questions.QUEUES) if address is not None else set()
            return found or None

        with self._machines.as_client():
            found = until(read, waiting_for="messages that are read", patience_s=WAIT_S)
        return set(self.acknowledged) - found
