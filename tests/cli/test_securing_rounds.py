"""A running cluster becomes secured in the three rounds of docs/security.md, one process at a time, and works
after every one of these steps."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import Result

from lab.certificates import Authority
from lab.ports import free_ports
from replispec.runtime.net.ask_shell import until
from tests.cli.test_admin import WAIT_S, Cluster
from tests.cli.test_secure_cluster import SECRET, USERS

PAGE = Path(__file__).parents[2] / "docs/security.md"
PROCESSES = ("nameserver", "broker-1", "broker-2")
ROUND = re.compile(r"^\| (?P<number>[123]) \| (?P<lines>[^|]*) \|", re.MULTILINE)


def rounds() -> list[list[str]]:
    """The lines of each round, as the page says them."""
    return [re.findall(r"`([^`]+)`", row["lines"]) for row in ROUND.finditer(PAGE.read_text())]


def lines_of_the_page() -> Mapping[str, str]:
    """Every line that the page gives for a secured role."""
    block = PAGE.read_text().partition("To each role's file:")[2].split("```")[1]
    return dict(line.split("=", 1) for line in block.strip().splitlines())


class ChangedCluster(Cluster):
    """A plain cluster, whose processes begin again with more in their files."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.authority = Authority(folder)
        own = self.authority.issue("member")
        (folder / "users.yml").write_text(USERS)
        (folder / "secret").write_text(f"{SECRET}\n")
        self.places = {
            "/etc/rocketmq/broker-1.pem": own.certificate,
            "/etc/rocketmq/broker-1.key": own.key,
            "/etc/rocketmq/ca.pem": self.authority.trust,
            "/etc/rocketmq/users.yml": "users.yml",
            "/etc/rocketmq/cluster-process.secret": "secret",
        }
        self.people = ["--tls-ca", self.authority.trust, "--tls-cert", own.certificate, "--tls-key", own.key]
        self.people += ["--access-key", "administrator", "--secret-key-file", str(folder / "secret")]
        self.has_tls = False
        self.added: dict[str, dict[str, str]] = {name: {} for name in PROCESSES}
        self.began: dict[str, tuple[str, dict[str, str]]] = {}
        self.ports = free_ports(range(4 * len(PROCESSES)))
        super().__init__(folder, stack)

    def start(self, name: str, role: str, **parameters: str) -> object:
        """As before, at ports that stay; a broker has another one two below its own."""
        at = PROCESSES.index(name)
        own = {"listenPort": str(self.ports[4 * at + 2])}
        if role == "broker":
            own["haListenPort"] = str(self.ports[4 * at + 3])
        else:
            own["controllerDLegerPeers"] = f"n0-127.0.0.1:{self.ports[4 * at + 3]}"
        self.began[name] = (role, parameters)
        return super().start(name, role, **{**parameters, **own, **self.added[name]})

    def begin_again(self, name: str, lines: Mapping[str, str]) -> None:
        """One process, with these lines more."""
        process = self.processes[name]
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=WAIT_S)
        self.added[name] |= lines
        role, parameters = self.began[name]
        self.start(name, role, **parameters)

    def run(self, *words: str) -> Result:
        """As an administrator, with TLS once listeners may want it."""
        return super().run(*words, *(self.people if self.has_tls else []))

    def is_whole(self) -> bool:
        """Whether one is master, both are in the set and alive, and the name server routes to the master."""
        rows = [each for each in self.rows() if each["in_sync"] and each["alive"]]
        masters = [each["address"] for each in rows if each["role"] == "master"]
        if len(rows) != 2 or len(masters) != 1 or {each["lag"] for each in rows} != {0}:
            return False
        told = self.run("admin", "clusterList", "-n", self.name_server)
        return told.exit_code == 0 and all(each in told.output for each in self.brokers)


@pytest.fixture(name="cluster")
def _cluster(tmp_path: Path) -> Iterator[ChangedCluster]:
    with ExitStack() as stack:
        yield ChangedCluster(tmp_path, stack)


def test_the_rounds_of_the_page_bring_every_line_of_a_secured_role() -> None:
    said = {line.partition("=")[0] for lines in rounds() for line in lines}
    assert len(rounds()) == 3
    assert said == set(lines_of_the_page())


def test_a_running_cluster_is_secured_in_three_rounds(cluster: ChangedCluster) -> None:
    cluster.until(cluster.is_whole)
    page = lines_of_the_page()
    for number, names in enumerate(rounds(), start=1):
        lines = {}
        for each in names:
            name, _, value = each.partition("=")
            lines[name] = cluster.places.get(value or page[name], value or page[name])
        for process in PROCESSES:
            cluster.begin_again(process, lines)
            assert until(lambda: cluster.is_whole() or None, wait_s=WAIT_S, pause_s=0.1), (number, process)
        # After the first round everybody takes TLS and a signature, and nobody wants either.
        cluster.has_tls = True
    plain = Cluster.run(cluster, "status", cluster.controller)
    assert plain.exit_code != 0
    for process in PROCESSES:
        assert SECRET not in (cluster.folder / f"{process}.err").read_text()
