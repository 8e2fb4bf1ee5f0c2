"""`make seen`: a real Prometheus scrapes three controllers and two brokers of ours through minutes of faults.

Names, types, help and labels of all that it scraped are compared with the specification; every query of the
shipped dashboard is asked; the shipped alerts fire for what is broken and clear when it is mended; and a
reader of the live page is timed from the end of a master to the picture of the next one. Needs `prometheus`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from lab.cluster import BROKER_NAME, Cluster, end_in_order
from lab.errors import LabError, NotInstalledError
from lab.family import Story
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings
from lab.rocketmq.peer import Peer
from lab.rocketmq.reader import GROUP, read_on
from lab.rocketmq.roles import OURS
from lab.rocketmq.waiting import leading
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.metrics import Metric
from replispec.wire.rocketmq.client import UpdateConsumerOffsetRequest
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.metrics import BY_ROLE

SHIPPED: Final = Path(__file__).resolve().parents[2] / "docs/observability"
CONTROLLERS: Final = ("controller-1", "controller-2", "controller-3")
BROKERS: Final = ("broker-1", "broker-2")
PROMETHEUS: Final = "prometheus"
TOPIC: Final = "SeenTopic"
SCRAPE_S: Final = 2
PATIENCE_S: Final = 180.0
# A member that stands still leaves the set sooner than by default, so that a round takes less.
BROKER_SETTINGS: Final = {"haMaxTimeSlaveNotCatchup": 6_000, "mappedFileSizeCommitLog": 4 * 1024 * 1024}
METRICS: Final = {metric.name: metric for metrics in BY_ROLE.values() for metric in metrics}
# What a target and a histogram have beside the labels of the specification.
FROM_PROMETHEUS: Final = {"__name__", "instance", "job", "le"}


def seen_port(cluster: Cluster, name: str) -> int:
    """Where a process shows what it does: below its main port."""
    return cluster.port(name) - 1


def quoted(text: str) -> str:
    """A text as a value in the address of a question."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


class Prometheus:
    """The running one."""

    def __init__(self, cluster: Cluster) -> None:
        program = shutil.which(PROMETHEUS)
        if program is None:
            raise NotInstalledError(f"{PROMETHEUS} is missing: apt-get install {PROMETHEUS}")
        self._cluster = cluster
        self._port = cluster.port(PROMETHEUS)
        targets = [f"{LOOPBACK}:{seen_port(cluster, name)}" for name in (*CONTROLLERS, *BROKERS)]
        file = cluster.part("conf") / "prometheus.json"
        file.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
                    "rule_files": [str(SHIPPED / "alerts.yaml")],
                    "scrape_configs": [{"job_name": "replispec", "static_configs": [{"targets": targets}]}],
                }
            )
        )
        options = (
            f"--config.file={file}",
            f"--storage.tsdb.path={cluster.part('data', PROMETHEUS)}",
            f"--web.listen-address={LOOPBACK}:{self._port}",
            "--log.level=warn",
        )
        cluster.launch(PROMETHEUS, [program, *options])
        cluster.until(lambda: self._get("/-/ready") and True, "Prometheus")

    def ask(self, path: str) -> Any:
        """The data of an answer of the API. Raises OSError, LabError."""
        answer = json.loads(self._get(f"/api/v1/{path}"))
        if answer["status"] != "success":
            raise LabError(f"{path}: {answer}")
        return answer["data"]

    def query(self, query: str) -> list[Any]:
        """What a query gives now."""
        found: list[Any] = self.ask(f"query?query={quoted(query)}")["result"]
        return found

    def firing(self) -> set[str]:
        """The alerts that fire."""
        return {
            each["labels"]["alertname"] for each in self.ask("alerts")["alerts"] if each["state"] == "firing"
        }

    def until_fires(self, alert: str) -> float:
        """How long it took until this alert fired."""
        return self._until(lambda: alert in self.firing(), f"{alert} to fire")

    def until_clear(self) -> float:
        """How long it took until no alert fired but those that look back over minutes."""
        return self._until(
            lambda: not self.firing() - {"ErrorsInTheLog", "ManyElections"}, "all alerts to clear"
        )

    def _until(self, holds: Callable[[], bool], what: str) -> float:
        began = time.monotonic()
        self._cluster.until(lambda: holds() or None, what, patience_s=PATIENCE_S)
        return time.monotonic() - began

    def _get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise OSError(f"{path}: {answer.status} {body[:300]!r}")
        return body


class Load(threading.Thread):
    """Sends to whoever is master, reads it, and says how far it has read, until it is told to stop."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._stopped = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        """Begin again with whatever is there after a fault."""
        while not self._stopped.is_set():
            try:
                self._go_on()
            except (OSError, RemoteProtocolError):
                self._stopped.wait(0.2)

    def stop(self) -> None:
        """End after what is under way."""
        self._stopped.set()
        self.join()

    def _go_on(self) -> None:
        name = leading(self._cluster, CONTROLLERS)
        master = None if name is None else questions.master(self._cluster.port(name), BROKER_NAME)
        if master is None or not master.address:
            self._stopped.wait(0.2)
            return
        host, _, port = master.address.rpartition(":")
        with Peer(host, int(port)) as peer:
            sender, position = questions.Sender(peer, TOPIC), 0
            while not self._stopped.wait(0.05):
                code, answer = sender.send(b"seen" * 50)
                if answer is None:
                    raise ConnectionError(f"refused with {code}")
                self.acknowledged += 1
                _, position = read_on(peer, TOPIC, 0, position)
                said = UpdateConsumerOffsetRequest(
                    consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=position
                )
                peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, said)


class Viewer(threading.Thread):
    """Reads the live page of one controller as a browser does, and keeps when it showed each masterEpoch."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self.shown: dict[int, float] = {}
        self.elected: dict[int, float] = {}

    def run(self) -> None:
        """Until the controller ends."""
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=60)
        try:
            connection.request("GET", "/events")
            answer = connection.getresponse()
            while line := answer.readline():
                if line.startswith(b"data: "):
                    self._take(json.loads(line[6:]))
        except OSError:
            pass
        finally:
            connection.close()

    def _take(self, said: Any) -> None:
        now_s = time.monotonic()
        if isinstance(said, list):
            for one in (each for picture in said for each in picture["sets"]):
                self.shown.setdefault(one["master_epoch"], now_s)
        elif said["what"] == "master elected":
            self.elected.setdefault(said["master_epoch"], now_s)


class Run:
    """The cluster, the faults, and what was seen."""

    def __init__(self, cluster: Cluster, story: Story) -> None:
        self.cluster, self.story = cluster, story
        self.page_s: list[float] = []
        for name in CONTROLLERS:
            self.start(name)
        self._until_leads()
        for name in BROKERS:
            self.start(name)
            self._master()
        self._until_in_sync()
        self.prometheus = Prometheus(cluster)
        cluster.until(self._is_scraped, "all of it to be scraped")
        self.load = Load(cluster)
        self.load.start()

    def start(self, name: str) -> None:
        """Start a process, again or for the first time."""
        address = f"{LOOPBACK}:{seen_port(self.cluster, name)}"
        if name in CONTROLLERS:
            peers = ";".join(f"n{at}-{self.cluster.address(each)}" for at, each in enumerate(CONTROLLERS, 1))
            own = {"controllerDLegerPeers": peers, "controllerDLegerSelfId": f"n{name[-1]}"}
            values = settings.controller(self.cluster, name, metricsListenAddress=address, **own)
            self.cluster.start(OURS, "controller", name, values)
            return
        values = settings.broker(self.cluster, name, metricsListenAddress=address, **BROKER_SETTINGS)
        del values["namesrvAddr"]
        values["controllerAddr"] = ";".join(map(self.cluster.address, CONTROLLERS))
        self.cluster.start(OURS, "broker", name, values)

    def _is_scraped(self) -> bool | None:
        """Whether Prometheus has seen every process, and the whole set."""
        up = len(self.prometheus.query("up == 1"))
        size = self.prometheus.query("rocketmq_controller_sync_state_set_size == 2")
        return (up == len(CONTROLLERS) + len(BROKERS) and bool(size)) or None

    def _until_leads(self) -> str:
        return self.cluster.until(lambda: leading(self.cluster, CONTROLLERS), "a leading controller")

    def _master(self, *, after: int = 0) -> questions.NamedMaster:
        def reached() -> questions.NamedMaster | None:
            name = leading(self.cluster, CONTROLLERS)
            found = None if name is None else questions.master(self.cluster.port(name), BROKER_NAME)
            return found if found is not None and found.broker_id and found.epoch > after else None

        return self.cluster.until(reached, "a master")

    def _until_in_sync(self) -> None:
        def reached() -> bool | None:
            name = leading(self.cluster, CONTROLLERS)
            return (name and questions.in_sync(self.cluster.port(name), BROKER_NAME) == [1, 2]) or None

        self.cluster.until(reached, "both brokers in the SyncStateSet")

    def _names(self) -> tuple[str, str]:
        """The broker that is master, and the other one."""
        address = self._master().address
        master = next(name for name in BROKERS if self.cluster.address(name) == address)
        return master, next(name for name in BROKERS if name != master)

    # Faults

    def faults(self) -> Iterator[Callable[[], None]]:
        """One after the other, for ever."""
        while True:
            yield self.kill_master
            yield self.kill_leader
            yield self.pause_replica
            yield self.stop_both_brokers
            yield self.kill_two_controllers

    def kill_master(self) -> None:
        """The other one follows, and the page shows it."""
        before, leader = self._master(), self._until_leads()
        viewer = Viewer(seen_port(self.cluster, leader))
        viewer.start()
        self.cluster.until(lambda: before.epoch in viewer.shown or None, "the page")
        master, _ = self._names()
        killed_s = self.cluster.kill(master)
        after = self._master(after=before.epoch)
        self.cluster.until(lambda: after.epoch in viewer.shown or None, "the page to show the new master")
        page_s = viewer.shown[after.epoch] - killed_s
        self.page_s.append(page_s)
        fired_s = self.prometheus.until_fires("SyncStateSetShrunk")
        self.prometheus.until_fires("ProcessDown")
        self.start(master)
        self._until_in_sync()
        self._tell("kill -9 of the master", f"the page showed the next one after {page_s:.2f} s", fired_s)

    def kill_leader(self) -> None:
        """Another controller leads."""
        leader = self._until_leads()
        self.cluster.kill(leader)
        fired_s = self.prometheus.until_fires("ProcessDown")
        self._until_leads()
        self.start(leader)
        self._tell("kill -9 of the leading controller", "ProcessDown", fired_s)

    def pause_replica(self) -> None:
        """It leaves the set, and comes back."""
        _, replica = self._names()
        self.cluster.pause(replica)
        fired_s = self.prometheus.until_fires("SyncStateSetShrunk")
        self.cluster.resume(replica)
        self._until_in_sync()
        self._tell("a replica stands still", "SyncStateSetShrunk", fired_s)

    def stop_both_brokers(self) -> None:
        """Nobody is master."""
        master, replica = self._names()
        self.cluster.kill(replica)
        self.cluster.until(
            lambda: self._set_size() == 1 or None, "the replica to leave the set", patience_s=PATIENCE_S
        )
        self.cluster.kill(master)
        fired_s = self.prometheus.until_fires("BrokerSetWithoutMaster")
        self.start(master)
        self._master()
        self.start(replica)
        self._until_in_sync()
        self._tell("both brokers end", "BrokerSetWithoutMaster", fired_s)

    def _set_size(self) -> int:
        name = leading(self.cluster, CONTROLLERS)
        return 0 if name is None else len(questions.in_sync(self.cluster.port(name), BROKER_NAME))

    def kill_two_controllers(self) -> None:
        """Nobody leads."""
        leader = self._until_leads()
        gone = [leader, next(name for name in CONTROLLERS if name != leader)]
        for name in gone:
            self.cluster.kill(name)
        fired_s = self.prometheus.until_fires("ControllersWithoutLeader")
        for name in gone:
            self.start(name)
        self._until_leads()
        self._tell("two of three controllers end", "ControllersWithoutLeader", fired_s)

    def _tell(self, what: str, seen: str, fired_s: float) -> None:
        cleared_s = self.prometheus.until_clear()
        self.story.tell(f"{what}: {seen}; fired after {fired_s:.0f} s, all clear after {cleared_s:.0f} s")

    # What was scraped

    def check_names(self) -> int:
        """Everything that was scraped is declared, with its type, help and labels. Raises LabError."""
        complaints: list[str] = []
        told = self.prometheus.ask("targets/metadata")
        for each in told:
            # OpenMetrics tells of a counter without the end of its name.
            metric = METRICS.get(each["metric"]) or METRICS.get(f"{each['metric']}_total")
            if metric is None:
                complaints.append(f"{each['metric']} is not declared")
            elif (metric.kind, metric.about) != (each["type"], each["help"].partition(" In ")[0]):
                complaints.append(f"{metric.name} is told as {each['type']}: {each['help']}")
        everything = quoted('{job="replispec",__name__=~"rocketmq.+"}')
        for series in self.prometheus.ask(f"series?match[]={everything}"):
            complaints += series_complaints(series)
        if complaints or not told:
            raise LabError(f"{len(complaints)} complaints: {'; '.join(complaints[:5])}")
        return len({each["metric"] for each in told})

    def check_dashboard(self) -> int:
        """Every query of the dashboard has an answer. Raises LabError."""
        panels = json.loads((SHIPPED / "dashboard.json").read_text())["panels"]
        asked = [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]
        empty = [f"{title}: {query}" for title, query in asked if not self.prometheus.query(query)]
        if empty:
            raise LabError(f"{len(empty)} queries of the dashboard give nothing: {'; '.join(empty[:5])}")
        return len(asked)


def series_complaints(series: dict[str, str]) -> Iterator[str]:
    """What is wrong with the name or the labels of one series."""
    name = series["__name__"]
    metric: Metric | None = METRICS.get(name)
    for suffix in ("_bucket", "_sum", "_count"):
        metric = metric or METRICS.get(name.removesuffix(suffix))
    if metric is None:
        yield f"{name} is not declared"
    elif set(series) - FROM_PROMETHEUS != {*metric.shared, *metric.labels}:
        yield f"{name} has the labels {sorted(series)}"


def play(folder: Path, seconds: float, story: Story) -> None:
    """Faults for so long, at least one of each kind where there is time. Raises LabError."""
    Cluster.remove_earlier(folder)
    with Cluster(folder) as cluster:
        run = Run(cluster, story)
        story.tell("three controllers, two brokers, a Prometheus")
        deadline_s, count = time.monotonic() + seconds, 0
        for fault in run.faults():
            fault()
            count += 1
            if time.monotonic() > deadline_s:
                break
        story.tell(f"{run.check_names()} metrics scraped, all as declared")
        story.tell(f"{run.check_dashboard()} queries of the dashboard answered")
        run.load.stop()
        slowest, middle = max(run.page_s), statistics.median(run.page_s)
        story.tell(
            f"{count} faults, {run.load.acknowledged} messages acknowledged; the page after a kill of the "
            f"master: {middle:.2f} s (median of {len(run.page_s)}), {slowest:.2f} s at most"
        )


def main() -> int:
    """Exit code 0 when all was as it should be, 1 when not, 3 without Prometheus."""
    parser = argparse.ArgumentParser(prog="make seen", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults go on (default: 600)")
    parser.add_argument("--out", type=Path, default=Path("out/seen"), help="the cluster's folder")
    arguments = parser.parse_args()
    end_in_order()
    try:
        play(arguments.out, arguments.seconds, Story())
    except LabError as error:
        print(f"seen: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("seen: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
