"""Three controllers over three brokers, of which some are struck again and again: ours over Java's,
or Java's over ours.

Each round kills or stops the master, one of the controllers, or both, while Java's producer sends. A stopped
process goes on when its place was taken. A round is over when all three controllers name one leader, it names
one master, every broker is in the SyncStateSet, and mqadmin tells of each controller what the wire tells.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lab.cluster import BROKER_NAME
from lab.errors import LabError
from lab.rocketmq import questions, settings, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.recounts import Recounts
from lab.rocketmq.interop.rounds import How, Round, Strike, Victim, planned
from lab.rocketmq.interop.stage import TOPIC, Stage
from lab.rocketmq.interop.strays import Strays
from lab.rocketmq.interop.tools import Client
from lab.rocketmq.interop.woken import OF_LOSSES, Woken, may_be_alone, rightly_elected
from lab.rocketmq.roles import OURS, RocketmqSubject
from replispec.wire.rocketmq.controller import ReplicasInfo

CONTROLLERS = ("controller-1", "controller-2", "controller-3")
BROKERS = ("broker-1", "broker-2", "broker-3")
# Every question of the lab is part of the capture.
POLL_S = 0.2
# Fewer than a producer sends in a day, and short: what counts is when they are accepted.
MESSAGES, MESSAGE_BYTES, PAUSE_MS = 10**6, 200, 50
# Longer than a leader is missed by its followers, and than a silent connection between two members is kept.
STOPPED_S = 4.0
# A silent master is missed after 10 s, sought every 5 s; a leader that has never heard it waits 10 s after
# its own election. Beside that: elections, the hearing, the 3 s after which Java's client gives up a request.
AGAIN_S_MAXIMUM = 40.0
# A replica of Java's that copies from somebody else is told of its master after 30 s, and started again after
# another 25.
WHOLE_S_MAXIMUM = 150.0
# On a busy machine Java's client gives up a question, and a replica may leave the SyncStateSet for a moment.
ASKED_MAXIMUM = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """Who leads and who is master, by the names of the lab."""

    leader: str
    master: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Programs:
    """Whose controllers, brokers and name server they are."""

    controllers: RocketmqSubject
    brokers: RocketmqSubject
    nameserver: RocketmqSubject


@dataclass(slots=True)
class Struck:
    """The scenario, and who is away."""

    stage: Stage
    programs: Programs
    producer: Client
    strays: Strays
    recounts: Recounts
    woken: Woken | None = None
    away: dict[str, How] = field(default_factory=dict)
    masters: dict[int, str] = field(default_factory=dict)
    again_s: list[float] = field(default_factory=list)

    def play(self, number: int, strikes: Round) -> None:
        """One round. Raises LabError when it does not end as it must."""
        before = self._settled()
        names = {strike: self._name(strike.victim, before, number) for strike in strikes}
        began_ms = _now_ms()
        for strike in strikes:
            self._strike(names[strike], strike.how)
        struck_ms = _now_ms()
        told = "; ".join(f"{each.how} of {names[each]}, {each.victim}" for each in strikes)
        for strike in (each for each in strikes if not each.is_late):
            self._bring_back(names[strike], strike, before)
        again_s = (self._accepted_ms(struck_ms) - began_ms) / 1_000
        for strike in (each for each in strikes if each.is_late):
            self._bring_back(names[strike], strike, before)
        after = self._settled()
        if self.woken is not None:
            self.woken.whole_ms, self.woken = _now_ms(), None
        whole_s = (_now_ms() - began_ms) / 1_000
        self.again_s.append(again_s)
        self.stage.measured.note(
            f"round {number}",
            f"{told}: a send is accepted again after {again_s:.1f} s, all is whole after {whole_s:.1f} s;"
            f" {after.leader} leads, {after.master} is master of epoch {after.epoch}",
        )
        if again_s > AGAIN_S_MAXIMUM:
            raise LabError(f"round {number}: no send was accepted within {AGAIN_S_MAXIMUM:g} s")
        self._tools_tell_the_truth(number)

    def _name(self, victim: Victim, now: Moment, number: int) -> str:
        if victim == Victim.MASTER:
            return now.master
        others = [name for name in CONTROLLERS if name != now.leader]
        return now.leader if victim == Victim.LEADER else others[number % len(others)]

    def _strike(self, name: str, how: How) -> None:
        self.away[name] = how
        if how == How.KILL:
            self.stage.cluster.kill(name)
        else:
            self.stage.cluster.pause(name)

    def _bring_back(self, name: str, strike: Strike, before: Moment) -> None:
        if strike.how == How.KILL:
            start = start_controller if name in CONTROLLERS else start_broker
            start(self.stage, self.programs, name)
        else:
            self._wait_replaced(strike.victim, before)
            if strike.victim == Victim.MASTER:
                self._expect_woken(name, before)
            self.stage.cluster.resume(name)
        del self.away[name]

    def _expect_woken(self, name: str, before: Moment) -> None:
        """From now on, and until all is whole, a master of Java's may acknowledge what it has alone."""
        cluster, brokers = self.stage.cluster, self.programs.brokers
        logs = [cluster.part("log") / f"{each}.out" for each in CONTROLLERS]
        if brokers is OURS or not may_be_alone(brokers.speaks) or not rightly_elected(logs, before.epoch):
            return
        places = (cluster.address(name), f"{cluster.host(name)}:{cluster.ha_port(name)}")
        self.woken = Woken(places, before.epoch, _now_ms())
        self.stage.measured.excuses.append(self.woken.excuse)

    def _wait_replaced(self, victim: Victim, before: Moment) -> None:
        """Wait longer than an election takes: until somebody else has the place."""
        cluster = self.stage.cluster

        def another_master() -> bool | None:
            leader = self._leader()
            known = questions.master(cluster.port(leader), BROKER_NAME) if leader is not None else None
            return (known is not None and known.epoch > before.epoch) or None

        if victim == Victim.MASTER:
            cluster.until(
                another_master, "another master than one that is stopped", patience_s=AGAIN_S_MAXIMUM
            )
        else:
            time.sleep(STOPPED_S)
            cluster.until(self._leader, "a leader while a controller is stopped", patience_s=AGAIN_S_MAXIMUM)

    def _accepted_ms(self, after_ms: int) -> int:
        """When the first send was accepted that began after a moment. Raises LabError."""

        def accepted() -> int | None:
            if self.producer.has_ended:
                raise LabError(f"Java's producer ended: {self.producer.complaint}")
            return figures.accepted_ms(self.producer.lines(), after_ms)

        what = "a send that is accepted again"
        return self.stage.cluster.until(accepted, what, patience_s=2 * AGAIN_S_MAXIMUM)

    def _settled(self) -> Moment:
        """Wait until all work together. Raises LabError, also when an epoch has two masters."""
        found = self.stage.cluster.until(
            self._together, "one leader, one master, and all in sync", patience_s=WHOLE_S_MAXIMUM
        )
        known = self.masters.setdefault(found.epoch, found.master)
        if known != found.master:
            raise LabError(f"epoch {found.epoch} has two masters: {known} and {found.master}")
        return found

    def _together(self) -> Moment | None:
        cluster = self.stage.cluster
        if self._start_recounts():
            return None
        leader = self._leader()
        told = {questions.leader(cluster.port(name)) for name in CONTROLLERS}
        if leader is None or told != {cluster.address(leader)}:
            return None
        master, epoch, members = _on_the_wire(questions.replicas(cluster.port(leader), BROKER_NAME))
        routed = questions.routed(cluster.port("nameserver"), BROKER_NAME).get(0)
        if outside := [name for name in BROKERS if cluster.address(name) not in members]:
            self._start_strays(master, outside)
        if outside or routed != master:
            return None
        return Moment(leader, self.stage.name_of(master), epoch)

    def _start_strays(self, master: str, outside: list[str]) -> None:
        """Start those again that will not come back by themselves. See lab.rocketmq.interop.strays."""
        if self.programs.brokers is OURS or not master:
            return
        for name, other in self.strays.found(self.stage.name_of(master), outside):
            self.stage.measured.note(
                f"known: {name} of Java is started again",
                f"it was told that {master} is master, and went on to copy from {other}",
            )
            self.stage.cluster.kill(name)
            start_broker(self.stage, self.programs, name)

    def _start_recounts(self) -> bool:
        """Start a controller again that applied a record twice. See lab.rocketmq.interop.recounts."""
        if self.programs.controllers is OURS:
            return False
        name = self.recounts.found([each for each in CONTROLLERS if each not in self.away])
        if name is None:
            return False
        self.stage.measured.note(f"known: {name} of Java is started again", "it applied a record twice")
        self.stage.cluster.kill(name)
        start_controller(self.stage, self.programs, name)
        return True

    def _leader(self) -> str | None:
        """Who leads of those that are not away; None while nobody does."""
        cluster = self.stage.cluster
        return waiting.leading(cluster, [name for name in CONTROLLERS if name not in self.away])

    def _tools_tell_the_truth(self, number: int) -> None:
        """Demand that mqadmin tells of each controller what the wire tells. Raises LabError."""
        for _ in range(ASKED_MAXIMUM):
            told = self._by_mqadmin()
            wire = [self._by_wire(name) for name in CONTROLLERS]
            if told == wire:
                return
            self.stage.measured.note(f"round {number}: mqadmin is asked once more after", str(told))
        raise LabError(f"round {number}: mqadmin tells of the controllers {told}, the wire {wire}")

    def _by_mqadmin(self) -> list[tuple[object, object]]:
        addresses = [self.stage.cluster.address(name) for name in CONTROLLERS]
        groups = [("getControllerMetaData", "-a", each) for each in addresses]
        members = [("getSyncStateSet", "-a", each, "-b", BROKER_NAME) for each in addresses]
        said = self.stage.tools.mqadmins([*groups, *members], nameserver=self.stage.nameserver)
        told = zip(said[: len(groups)], said[len(groups) :], strict=True)
        return [(figures.group_told(group), figures.members_told(each)) for group, each in told]

    def _by_wire(self, name: str) -> tuple[object, object]:
        cluster = self.stage.cluster
        leader = questions.leader(cluster.port(name))
        known = questions.replicas(int(leader.rpartition(":")[2]), BROKER_NAME)
        return (leader, {cluster.address(each) for each in CONTROLLERS}), _on_the_wire(known)


def under_our_controllers(stage: Stage) -> None:
    """Three Java brokers under ours: rounds from a seed. Raises LabError."""
    brokers = Apache(stage.rounds.release) if stage.rounds.release else stage.tools.apache
    play(stage, Programs(OURS, brokers, OURS), planned(stage.rounds.count, stage.rounds.seed))


def play(stage: Stage, programs: Programs, rounds: list[Round]) -> None:
    """The rounds; at the end nothing that was acknowledged is missing. Raises LabError."""
    cluster, measured = stage.cluster, stage.measured
    cluster.poll_s = POLL_S
    measured.of_losses = OF_LOSSES
    _start(stage, programs)
    sizes = (MESSAGES, MESSAGE_BYTES, PAUSE_MS)
    arguments = (stage.nameserver, TOPIC, "0", *map(str, sizes))
    with stage.tools.client_running("produce", *arguments) as producer:
        struck = Struck(stage, programs, producer, Strays(cluster, BROKERS), Recounts(cluster))
        cluster.until(lambda: figures.acknowledged(producer.lines()) or None, "a producer that sends")
        for number, strikes in enumerate(rounds, start=1):
            struck.play(number, strikes)
        producer.stop()
        lines = producer.lines()
    taken = figures.acknowledged(lines)
    measured.note("seconds until a send is accepted again", struck.again_s)
    measured.note("mqadmin tells of each controller what the wire tells", f"{len(struck.again_s)} times")
    measured.note("masters by epoch", struck.masters)
    measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))
    measured.note("sends that were not accepted", len(lines) - len(taken))
    end = waiting.wait_same_end(cluster, *BROKERS)
    stage.same_logs(BROKERS, end)
    lost = taken - stage.read_back("group")
    measured.missed.extend(line for line in lines if line["key"] in lost)
    measured.note(f"of {len(taken)} acknowledged messages the consumer misses", len(lost))


def _start(stage: Stage, programs: Programs) -> None:
    cluster = stage.cluster
    for program in {programs.controllers, programs.brokers, programs.nameserver}:
        if isinstance(program, Apache):
            program.fetch()
    cluster.start(programs.nameserver, "nameserver", "nameserver", settings.nameserver(cluster))
    for name in CONTROLLERS:
        start_controller(stage, programs, name)
    cluster.until(lambda: waiting.leading(cluster, CONTROLLERS), "a controller that leads")
    for name in BROKERS:
        start_broker(stage, programs, name)


def start_controller(stage: Stage, programs: Programs, name: str) -> None:
    """A member of the group, the first time or again."""
    cluster = stage.cluster
    members = {each: f"n{at}" for at, each in enumerate(CONTROLLERS, start=1)}
    peers = ";".join(f"{member}-{cluster.address(each)}" for each, member in members.items())
    own = {"controllerDLegerPeers": peers, "controllerDLegerSelfId": members[name]}
    cluster.start(programs.controllers, "controller", name, settings.controller(cluster, name, **own))


def start_broker(stage: Stage, programs: Programs, name: str) -> None:
    """A broker that knows all controllers, the first time or again."""
    cluster = stage.cluster
    everybody = ";".join(map(cluster.address, CONTROLLERS))
    own = settings.broker(cluster, name, controllerAddr=everybody)
    cluster.start(programs.brokers, "broker", name, own)


def _on_the_wire(known: ReplicasInfo | None) -> tuple[str, int, set[str]]:
    """Address and epoch of the master, and addresses of the SyncStateSet, as a controller answered."""
    if known is None:
        return "", 0, set()
    members = {each.broker_address or each.address or "" for each in known.in_sync_replicas or ()}
    return known.master_address or "", known.master_epoch or 0, members


def _now_ms() -> int:
    """By the clock of the lines of Java's client."""
    return time.time_ns() // 1_000_000
