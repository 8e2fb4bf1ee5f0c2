"""What a scenario plays on: a cluster, Java's tools beside it, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lab.cluster import BROKER_NAME, Cluster
from lab.family import Rounds
from lab.interop.measured import Measured
from lab.ports import LOOPBACK
from lab.rocketmq import logs, questions, settings
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.tools import ClientFailedError, Tools
from lab.rocketmq.roles import OURS
from lab.subjects.subject import Subject

TOPIC = "InteropTopic"
MESSAGES, MESSAGE_BYTES = 1_000, 1_000
# During a fail-over: one message every few milliseconds, for long enough to see both sides of it.
STEADY, PAUSE_MS = 600, 10
IDLE_MS = 3_000


@dataclass(frozen=True, slots=True)
class Stage:
    """What a scenario plays on."""

    cluster: Cluster
    tools: Tools
    measured: Measured
    rounds: Rounds = field(default_factory=Rounds)
    named: str = "nameserver"
    """The name server that clients and commands are told, of several."""

    @property
    def nameserver(self) -> str:
        """Its address."""
        return self.cluster.address(self.named)

    def start_coordinator(self, *, ours: bool, **more: object) -> None:
        """A name server and a controller; `more` are settings of the controller."""
        cluster, subject = self.cluster, self.subject(ours=ours)
        self.start_nameserver(ours=ours)
        cluster.start(subject, "controller", "controller", settings.controller(cluster, "controller", **more))
        self.cluster.until(self._coordinated, "a controller that leads and a name server")

    def start_nameserver(self, *, ours: bool) -> None:
        """A name server alone."""
        values = settings.nameserver(self.cluster)
        self.cluster.start(self.subject(ours=ours), "nameserver", "nameserver", values)

    def _coordinated(self) -> bool | None:
        questions.routed(self.cluster.port("nameserver"), BROKER_NAME)
        questions.replicas(self.cluster.port("controller"), BROKER_NAME)
        return True

    def start_broker(self, name: str, *, ours: bool, **more: object) -> None:
        """A broker of the set."""
        values = settings.broker(self.cluster, name, **more)
        self.cluster.start(self.subject(ours=ours), "broker", name, values)

    def subject(self, *, ours: bool) -> Subject:
        """Whose program is started."""
        return OURS if ours else self.tools.apache

    def place_of(self, name: str) -> tuple[str, int]:
        """Where a process listens."""
        return LOOPBACK, self.cluster.port(name)

    def name_of(self, address: str) -> str:
        """The lab's name of the broker at an address."""
        return next(name for name in self.cluster.processes if self.cluster.address(name) == address)

    def produce(self, first: int, count: int = MESSAGES, how: str = "") -> set[str]:
        """Send messages with Java's producer; the keys of those that were acknowledged."""
        arguments = (self.nameserver, TOPIC, str(first), str(count), str(MESSAGE_BYTES), "0", how)
        return figures.acknowledged(self.tools.client("produce", *arguments))

    def produce_through(self, first: int, strike: Callable[[], None]) -> list[dict[str, object]]:
        """Send with Java's producer, strike once it sends, and give its lines of before and after."""
        arguments = (self.nameserver, TOPIC, str(first), str(STEADY), str(MESSAGE_BYTES), str(PAUSE_MS))
        with self.tools.client_running("produce", *arguments) as producer:
            sends = f"a producer that sends from {first} on"
            self.cluster.until(lambda: len(producer.lines()) > STEADY // 4 or None, sends)
            strike()
            return producer.finish()

    def read_back(self, group: str) -> set[str]:
        """The keys that Java's consumer reads from the beginning. One that ends by a fault of its own client
        is started once more, under another group, and that is told."""
        arguments = ("pull", self.nameserver, TOPIC)
        try:
            lines = self.tools.client(*arguments, group, str(IDLE_MS))
        except ClientFailedError as failed:
            self.measured.note("Java's consumer failed and was started again", str(failed))
            lines = self.tools.client(*arguments, f"{group}-again", str(IDLE_MS))
        return figures.read(lines)

    def route_known(self) -> None:
        """Wait until the name server routes to a master."""
        port = self.cluster.port("nameserver")
        self.cluster.until(lambda: questions.routed(port, BROKER_NAME).get(0), "a route to the master")

    def same_logs(self, names: Iterable[str], end: int) -> None:
        """Demand that the logs of these brokers are the same bytes up to here."""
        digests = {logs.log_digest(logs.log_folder(self.cluster, name), end) for name in names}
        what = f"sha256 of the first {end} bytes of the logs of {', '.join(names)}"
        self.measured.demand(len(digests) == 1, what, sorted(digest[:16] for digest in digests))

    def nothing_lost(self, acknowledged: set[str], group: str) -> None:
        """Demand that Java's consumer reads everything that was acknowledged."""
        lost = acknowledged - self.read_back(group)
        what = f"of {len(acknowledged)} acknowledged messages the consumer misses"
        self.measured.demand(not lost, what, len(lost))
