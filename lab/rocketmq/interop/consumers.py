"""Members of one group of Java push consumers, and a watch over how far the group has read."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self

from lab.errors import LabError
from lab.rocketmq import questions
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.figures import Positions
from lab.rocketmq.interop.stage import TOPIC, Stage
from lab.rocketmq.interop.tools import Client
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import ConsumerOffsetTable

READ_S_MAXIMUM = 90.0
WATCH_S = 1.0
STARTS_MAXIMUM = 3


class Consumers:
    """The members; each is a process of its own. Leaving the block ends them."""

    def __init__(self, stage: Stage, group: str, brokers: tuple[str, ...], *, how: str = "") -> None:
        self._how = how
        self._stage = stage
        self._group = group
        self._brokers = brokers
        self._members: dict[str, Client] = {}
        # When it was known how far the group has read, by the clock of the members' lines.
        self._floors: list[tuple[int, Positions]] = []
        self._fallen: list[str] = []
        self._leaving = threading.Event()
        self._watch = threading.Thread(target=self._watch_floor, daemon=True)
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._watch.join()
        self._running.close()

    def start(self, member: str) -> None:
        """Another member; it has subscribed when this returns. One whose first requests are too late for its
        own client, as happens on a busy machine, ends; another one is started, and that is told."""
        stage = self._stage
        for _ in range(STARTS_MAXIMUM):
            running = stage.tools.client_running("push", stage.nameserver, TOPIC, self._group, self._how)
            client = self._members[member] = self._running.enter_context(running)
            begun = partial(_has_begun, client)
            stage.cluster.until(begun, f"the {member} member of the group")
            if client.lines():
                return
            stage.measured.note(f"Java's {member} consumer failed and was started again", client.complaint)
        raise LabError(f"the {member} member of the group does not start")

    def kill(self, member: str) -> None:
        """End one as kill -9 does."""
        self._members[member].kill()

    def stop(self, member: str) -> None:
        """End one in order."""
        self._members[member].stop()

    def by_member(self) -> dict[str, list[dict[str, object]]]:
        """What each member has said."""
        return {name: client.lines() for name, client in self._members.items()}

    def lines(self) -> list[dict[str, object]]:
        """What all members have said, those that ended too."""
        return [line for client in self._members.values() for line in client.lines()]

    def wait_all_read(self, acknowledged: set[str], when: str) -> None:
        """Wait until each of these messages was consumed by some member. Raises LabError."""

        def missing() -> set[str]:
            return acknowledged - figures.read(self.lines())

        try:
            self._stage.cluster.until(
                lambda: not missing() or None, f"{when}: all consumed", patience_s=READ_S_MAXIMUM
            )
        except LabError as error:
            left = sorted(missing())
            raise LabError(f"{error}; {len(left)} are missing, {', '.join(left[:5])} first") from None

    def keep_floor(self, master: str) -> None:
        """Wait until the group is at the end of all queues, and all brokers have that on their disks:
        nobody may be told less from now on."""
        cluster = self._stage.cluster

        def reached() -> Positions | None:
            ends = questions.ends(cluster.port(master), TOPIC)
            told = [self._told(name) for name in self._brokers]
            kept = [self._kept(name) for name in self._brokers]
            return ends if all(each == ends for each in (*told, *kept)) else None

        what = f"positions of the group at the ends that {master} tells, with all brokers"
        floor = cluster.until(reached, what, patience_s=READ_S_MAXIMUM)
        self._floors.append((time.time_ns() // 1_000_000, floor))

    def judge(self, acknowledged: set[str]) -> None:
        """Demand that everything was consumed, nothing again that was known to be, and no position fell."""
        measured, lines = self._stage.measured, self.lines()
        lost = acknowledged - figures.read(lines)
        measured.demand(not lost, f"of {len(acknowledged)} messages the push consumers miss", len(lost))
        again = figures.given_again(lines, self._floors)
        measured.demand(
            not again, "messages given again below what brokers had on their disks", again[:3] or 0
        )
        measured.demand(not self._fallen, "positions that a broker told and fell", self._fallen[:3] or 0)
        times = [str(line["key"]) for line in lines if line["status"] == "READ"]
        measured.note("given more than once, above it", len(times) - len(set(times)))
        shares = {name: len(figures.read(client.lines())) for name, client in self._members.items()}
        measured.demand(all(shares.values()), "messages that each member consumed", shares)

    def _told(self, broker: str) -> Positions:
        table = questions.positions(self._stage.cluster.port(broker))
        return self._of_group(table)

    def _kept(self, broker: str) -> Positions:
        path = self._stage.cluster.folder / "data" / broker / constants.CONSUMER_OFFSETS_FILE
        return self._of_group(ConsumerOffsetTable.decode(path.read_bytes()))

    def _of_group(self, table: ConsumerOffsetTable) -> Positions:
        key = f"{TOPIC}{constants.TOPIC_GROUP_SEPARATOR}{self._group}"
        found = (table.offset_table or {}).get(key)
        return dict(found.offsets or {}) if found is not None else {}

    def _watch_floor(self) -> None:
        """Ask all brokers, all the time; one that does not answer tells nothing."""
        while not self._leaving.wait(WATCH_S):
            for name in self._brokers:
                floor: Positions = self._floors[-1][1] if self._floors else {}
                try:
                    told = self._told(name)
                except (OSError, RemoteProtocolError):
                    continue
                if figures.fallen(floor, told):
                    self._fallen.append(f"{name} tells {told} after {floor}")


def _has_begun(client: Client) -> bool | None:
    """Whether it has subscribed, or will not any more."""
    return bool(client.lines() or client.has_ended) or None
