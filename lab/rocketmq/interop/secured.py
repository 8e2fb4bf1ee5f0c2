"""A secured cluster: three controllers, a name server and two brokers of ours with TLS and signatures, and
Java's programs among them: a broker of the same set, producers, consumers, mqadmin; and a client in Go.

Controllers take no connection without a certificate. Name server and brokers verify the one that is shown:
the client in Go can show none.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lab.cluster import BROKER_NAME, CLUSTER_NAME
from lab.errors import LabError, NotInstalledError
from lab.ports import LOOPBACK
from lab.processes import environment
from lab.rocketmq import settings
from lab.rocketmq.interop import figures
from lab.rocketmq.interop.relieved import JOIN_S, stood_still_s
from lab.rocketmq.interop.relieved import REASON as RELIEVED
from lab.rocketmq.interop.secrets import ADMINISTRATOR, CLIENT, READER, SealedApache, Security
from lab.rocketmq.interop.stage import MESSAGES, TOPIC, Stage
from lab.rocketmq.interop.tools import CLI, ClientFailedError, Tools
from lab.rocketmq.roles import OURS
from replispec.wire.rocketmq.codes import RemotingFlag

CONTROLLERS: Final = ("controller-1", "controller-2", "controller-3")
OWN_BROKERS: Final = ("broker-1", "broker-2")
JAVA_BROKER: Final = "broker-3"
BROKERS: Final = (*OWN_BROKERS, JAVA_BROKER)
OTHER_TOPIC: Final = "OtherTopic"
GROUPS: Final = ("secured", "secured-again", "go-readers", "nobody", "nobody-again")
SETTLE_S: Final = 90.0
POLL_S: Final = 0.5
GO_CLIENT: Final = Path(__file__).with_name("goclient")
GO_MESSAGES: Final = 100
GO_S_MAXIMUM: Final = 300
FEW: Final = 3
# In each header of remoting that is not sealed.
PLAIN_FLAG: Final = re.compile(rb'"flag":(\d+)')


@dataclass(frozen=True, slots=True)
class Secured:
    """The scenario under way."""

    stage: Stage
    security: Security

    @property
    def controllers(self) -> str:
        """All controllers, as they are given to whoever asks."""
        return ";".join(map(self.stage.cluster.address, CONTROLLERS))

    def start_all(self) -> None:
        """Controllers, the name server, the brokers; wait until all three are in the set."""
        cluster, ours = self.stage.cluster, self.security.ours()
        cluster.poll_s = POLL_S
        cluster.start(OURS, "nameserver", "nameserver", {**settings.nameserver(cluster), **ours})
        members = {name: f"n{at}" for at, name in enumerate(CONTROLLERS, start=1)}
        peers = ";".join(f"{member}-{cluster.address(name)}" for name, member in members.items())
        for name, member in members.items():
            own: dict[str, object] = {"controllerDLegerPeers": peers, "controllerDLegerSelfId": member}
            own |= {"metricsListenAddress": self.seen_at(name), **self.security.ours(shown="REQUIRE")}
            cluster.start(OURS, "controller", name, settings.controller(cluster, name, **own))
        for name in OWN_BROKERS:
            self.start_broker(name)
        self.wait_set({1, 2})
        self.start_broker(JAVA_BROKER)
        self.wait_set({1, 2, 3})

    def start_broker(self, name: str) -> None:
        """A broker of the set, the first time or again."""
        cluster = self.stage.cluster
        if name == JAVA_BROKER:
            signs = self.security.of_java_broker(cluster.part("data", name))
            own = settings.broker(cluster, name, controllerAddr=self.controllers, **signs)
            cluster.start(self.stage.tools.apache, "broker", name, own)
            return
        own = settings.broker(
            cluster,
            name,
            controllerAddr=self.controllers,
            metricsListenAddress=self.seen_at(name),
            **self.security.ours(),
            **self.security.of_replication(),
        )
        cluster.start(OURS, "broker", name, own)

    def seen_at(self, name: str) -> str:
        """Where a process shows its metrics."""
        return f"{LOOPBACK}:{self.stage.cluster.port(name) - 1}"

    def replispec(self, *words: str, user: str = ADMINISTRATOR) -> subprocess.CompletedProcess[str]:
        """One command of ours, signed as a user."""
        command = [*CLI, *words, *self.security.words(user)]
        variables = environment(NAMESRV_ADDR=self.stage.nameserver)
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SETTLE_S, env=variables
        )

    def rows(self) -> list[Mapping[str, Any]]:
        """The set by the account of `replispec status`; empty while it cannot be had."""
        done = self.replispec("status", self.controllers, "--set", BROKER_NAME, "--format", "json")
        try:
            rows: list[Mapping[str, Any]] = json.loads(done.stdout)
        except ValueError:
            return []
        return rows

    def wait_set(self, members: set[int], patience_s: float = SETTLE_S) -> str:
        """Wait until these ids are in the SyncStateSet, their logs are equal, and one is master: its name."""

        def reached() -> str | None:
            rows = [each for each in self.rows() if each["in_sync"]]
            master = [each["address"] for each in rows if each["role"] == "master"]
            if {each["id"] for each in rows} != members or len(master) != 1:
                return None
            return self.stage.name_of(master[0]) if {each["lag"] for each in rows} == {0} else None

        return self.stage.cluster.until(reached, f"SyncStateSet {sorted(members)}", patience_s=patience_s)

    def as_user(self, user: str, secret_of: str = "", *, sealed: bool = True) -> Stage:
        """The same stage, whose client signs as a user; or as nobody, when it is empty."""
        options = self.security.java_options() if sealed else ()
        signed = self.security.signed_as(user, secret_of) if user else ()
        apache = SealedApache(self.stage.tools.apache.release, (*options, *signed))
        return replace(self.stage, tools=Tools(self.stage.cluster, apache))

    def mqadmin(self, *words: str) -> str:
        """What mqadmin prints, with access key and secret of its conf/tools.yml."""
        return self.stage.tools.mqadmin(*words, nameserver=self.stage.nameserver)


def among_java(stage: Stage) -> None:
    """Raises LabError."""
    security = Security.made(stage.cluster, TOPIC, GROUPS)
    apache = SealedApache(stage.tools.apache.release, security.java_options())
    secured = Secured(replace(stage, tools=Tools(stage.cluster, apache)), security)
    secured.start_all()
    stage.measured.note("SyncStateSet of two brokers of ours and one of Java's", [1, 2, 3])
    _administered(secured)
    client = secured.as_user(CLIENT)
    acknowledged = client.produce(0)
    enough = len(acknowledged) > MESSAGES - MESSAGES // 10
    stage.measured.demand(enough, "Java's producer is acknowledged", len(acknowledged))
    _refused(secured)
    acknowledged |= _through_a_loss(secured, client)
    acknowledged |= _java_as_master(secured, client)
    acknowledged |= _go(secured)
    secured.wait_set({1, 2, 3})
    stage.same_logs(BROKERS, _end(secured))
    client.nothing_lost(acknowledged, "secured")
    _nothing_told(secured)


def _administered(secured: Secured) -> None:
    """Topics made by mqadmin, and what it tells of controllers and brokers."""
    stage, measured = secured.stage, secured.stage.measured
    master = stage.cluster.address(secured.wait_set({1, 2, 3}))
    for topic in (TOPIC, OTHER_TOPIC):
        said = secured.mqadmin("updateTopic", "-b", master, "-t", topic, "-r", "4", "-w", "4")
        measured.demand("success" in said, f"mqadmin updateTopic {topic}", said)
    addresses = [stage.cluster.address(name) for name in BROKERS]
    leader = stage.cluster.address(CONTROLLERS[0])
    said = secured.mqadmin("getSyncStateSet", "-a", leader, "-b", BROKER_NAME)
    measured.demand(all(each in said for each in addresses), "mqadmin getSyncStateSet names all three", said)
    said = secured.mqadmin("getControllerMetaData", "-a", leader)
    measured.demand("ControllerLeaderId" in said, "mqadmin getControllerMetaData", said)
    said = secured.mqadmin("getBrokerEpoch", "-b", BROKER_NAME)
    measured.demand(said.count("Epoch") >= len(BROKERS), "mqadmin getBrokerEpoch asks all three", said)
    said = secured.mqadmin("clusterList")
    measured.demand(all(each in said for each in addresses), "mqadmin clusterList shows all three", said)
    said = secured.mqadmin("haStatus", "-b", master)
    measured.demand("#InSyncSlaveNum\t2" in said, "mqadmin haStatus shows two replicas in sync", said)


def _refused(secured: Secured) -> None:
    """Who does not sign, signs wrongly, lacks the right, or has no TLS gets nothing."""
    measured = secured.stage.measured
    cases = {
        "no signature": secured.as_user(""),
        "a user that nobody knows": secured.as_user("somebody-else", CLIENT),
        "the secret of another user": secured.as_user(CLIENT, READER),
        "a user who may only read": secured.as_user(READER),
        "no TLS": secured.as_user(CLIENT, sealed=False),
    }
    for what, stage in cases.items():
        try:
            taken = len(stage.produce(0, FEW))
        except ClientFailedError:
            taken = 0
        measured.demand(taken == 0, f"messages taken of Java's producer with {what}", taken)
    master = secured.stage.cluster.address(secured.wait_set({1, 2, 3}))
    tools = secured.security.folder / "tools.yml"
    kept = tools.read_text()
    tools.unlink()
    try:
        said = secured.mqadmin("updateTopic", "-b", master, "-t", "Unsigned", "-r", "4", "-w", "4")
    except LabError as error:
        said = str(error)
    finally:
        tools.write_text(kept)
    measured.demand("success" not in said, "mqadmin without a signature makes no topic", "refused")
    told = secured.replispec("admin", "topicStatus", "-t", "Unsigned")
    measured.demand(told.returncode != 0, "and there is none", "none")


def _through_a_loss(secured: Secured, client: Stage) -> set[str]:
    """kill -9 of the master while Java's producer sends; it comes back."""
    stage, measured = secured.stage, secured.stage.measured
    before = secured.wait_set({1, 2, 3})

    def strike() -> None:
        killed_s = stage.cluster.kill(before)
        stage.cluster.until(lambda: _another(secured, before), "a new master", patience_s=SETTLE_S)
        measured.note("seconds from kill -9 to a new master, seen", round(time.monotonic() - killed_s, 1))

    lines = client.produce_through(MESSAGES, strike)
    measured.note("longest pause of the producer, ms", figures.longest_gap_ms(lines))
    secured.start_broker(before)
    measured.note("master after it", secured.wait_set({1, 2, 3}))
    return figures.acknowledged(lines)


def _another(secured: Secured, before: str) -> str | None:
    """Who is master beside the one that was."""
    masters = [each["address"] for each in secured.rows() if each["role"] == "master" and each["alive"]]
    return masters[0] if masters and masters[0] != secured.stage.cluster.address(before) else None


def _java_as_master(secured: Secured, client: Stage) -> set[str]:
    """mqadmin names Java's broker: the controller's signed request reaches it, and ours copy from it."""
    stage, measured = secured.stage, secured.stage.measured
    said = _elect(secured, JAVA_BROKER)
    stage.cluster.until(
        lambda: secured.wait_set({1, 2, 3}) == JAVA_BROKER or None, f"Java's broker as master: {said}"
    )
    measured.note("Java's broker is master after mqadmin electMaster, ours follow", "yes")
    acknowledged = client.produce(10 * MESSAGES)
    # On a busy machine Java's client gives up its first question to the name server.
    enough = len(acknowledged) > MESSAGES - MESSAGES // 10
    measured.demand(enough, "Java's producer is acknowledged by it", len(acknowledged))
    _elect(secured, OWN_BROKERS[0])
    _relieved(secured)
    return acknowledged


def _relieved(secured: Secured) -> None:
    """A broker of ours is master again, and Java's, which was, follows: at once, or as late as is known."""
    stage, measured = secured.stage, secured.stage.measured
    began_s = time.monotonic()
    patience_s = SETTLE_S + JOIN_S
    stage.cluster.until(
        lambda: secured.wait_set({1, 2, 3}, patience_s) != JAVA_BROKER or None,
        "a broker of ours as master again",
    )
    took_s = time.monotonic() - began_s
    stood_s = stood_still_s((stage.cluster.part("log") / f"{JAVA_BROKER}.log").read_text(errors="replace"))
    measured.demand(took_s - stood_s < SETTLE_S, "Java's broker follows again, s", round(took_s, 1))
    if stood_s > 1:
        measured.note(f"known: of these it stood still for {stood_s:.0f} s", RELIEVED)


def _elect(secured: Secured, name: str) -> str:
    """Have mqadmin name a broker as master; what it prints."""
    address = secured.stage.cluster.address(name)
    (number,) = (str(each["id"]) for each in secured.rows() if each["address"] == address)
    leader = secured.stage.cluster.address(CONTROLLERS[0])
    return secured.mqadmin(
        *("electMaster", "-a", leader, "-b", number, "-bn", BROKER_NAME, "-c", CLUSTER_NAME)
    )


def _go(secured: Secured) -> set[str]:
    """The client in Go with TLS and a signature: what it sent and read; without either it gets nothing."""
    stage, measured = secured.stage, secured.stage.measured
    program = _built(stage.cluster.part("classes"))
    place = [stage.nameserver, TOPIC, GROUPS[2], str(GO_MESSAGES)]
    signed = [CLIENT, str(secured.security.secret_file(CLIENT))]
    done = _run([str(program), *place, "tls", *signed])
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    read = figures.read(lines)
    taken = figures.acknowledged(lines)
    measured.demand(
        len(taken) == GO_MESSAGES and read >= taken,
        "the client in Go, with TLS and a signature, sends and reads",
        f"{len(taken)} and {len(read)}; {done.stderr[-300:]}" if done.returncode else len(read),
    )
    for what, words in {"no signature": ["tls"], "no TLS": ["plain", *signed]}.items():
        done = _run([str(program), *place[:3], str(FEW), *words])
        count = done.stdout.count("SEND_OK")
        measured.demand(count == 0 and done.returncode != 0, f"taken of the client in Go with {what}", count)
    return taken


def _built(folder: Path) -> Path:
    """The client in Go. Raises NotInstalledError without Go, LabError when it cannot be built."""
    program = shutil.which("go")
    if program is None:
        raise NotInstalledError("go is missing: apt-get install golang-go")
    made = folder / "labclient"
    done = subprocess.run(
        [program, "build", "-o", str(made), "."],
        cwd=GO_CLIENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=GO_S_MAXIMUM,
    )
    if done.returncode:
        raise LabError(f"the client in Go: {done.stderr[-400:]}")
    return made


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Raises LabError when it does not end."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=GO_S_MAXIMUM,
            env=dict(os.environ),
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{command[0]}: not done in {GO_S_MAXIMUM} s") from error


def _end(secured: Secured) -> int:
    """Where the logs end, which are equally long."""
    ends = {each["end"] for each in secured.rows()}
    if len(ends) != 1:
        raise LabError(f"logs end at {ends}")
    return int(ends.pop())


def _nothing_told(secured: Secured) -> None:
    """No secret in any log, metric, page, bundle or packet; no request of remoting outside of TLS."""
    stage, measured = secured.stage, secured.stage.measured
    shown = stage.cluster.part("shown")
    for name in (*CONTROLLERS, *OWN_BROKERS):
        for page in ("metrics", "healthz", "") if name in CONTROLLERS else ("metrics", "healthz"):
            text = _page(stage.cluster.port(name) - 1, f"/{page}")
            (shown / f"{name}-{page or 'page'}").write_bytes(text)
    _bundle(secured, shown)
    found = list(secured.security.found_in(stage.cluster.folder, [f"{JAVA_BROKER}.properties"]))
    java = [each for each in found if JAVA_BROKER in each]
    for each in java:
        measured.note("known: a secret that Java's broker writes down itself", each)
    count = sum(1 for each in stage.cluster.folder.rglob("*") if each.is_file())
    left = sorted(set(found) - set(java))
    measured.demand(not left, f"of {count} files with a secret that nobody configured there", left or 0)
    capture = (stage.cluster.folder / "traffic.pcapng").read_bytes()
    flags = [int(each) for each in PLAIN_FLAG.findall(capture)]
    measured.note("requests in the clear, of the clients without TLS", len(flags))
    answers = sum(each & RemotingFlag.RESPONSE for each in flags)
    measured.demand(answers == 0, "answers outside of TLS in the captured traffic", answers)


def _page(port: int, path: str) -> bytes:
    """What a process shows of itself. Raises OSError."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def _bundle(secured: Secured, shown: Path) -> None:
    """A bundle of all configurations and logs, unpacked."""
    folder = secured.stage.cluster.folder
    made = shown / "bundle.tar.gz"
    files = [
        word for path in sorted((folder / "conf").glob("*.properties")) for word in ("--config", str(path))
    ]
    files += [word for path in sorted((folder / "log").glob("*.out")) for word in ("--log", str(path))]
    done = secured.replispec("admin", "bundle", "-o", str(made), "-a", secured.controllers, *files)
    secured.stage.measured.demand(done.returncode == 0, "a bundle", done.stderr[-300:] or True)
    with tarfile.open(made) as packed:
        packed.extractall(shown / "bundle", filter="data")
