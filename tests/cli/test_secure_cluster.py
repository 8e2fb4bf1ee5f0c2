"""A cluster of real processes with TLS on every connection, certificates on both sides, and signatures."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lab.certificates import Authority, Files
from lab.ports import free_ports
from replispec.cli.main import command_line
from replispec.runtime.net.ask_shell import until
from tests.cli.test_admin import WAIT_S, Cluster

SECRET = "a-secret-that-nobody-logs"
PASSWORD = "a-password-that-nobody-logs"
USERS = f"""
accounts:
  - {{accessKey: administrator, secretKey: {SECRET}, admin: true}}
  - {{accessKey: cluster-process, secretKey: {SECRET}, role: broker}}
  - {{accessKey: only-a-client, secretKey: {SECRET}, defaultTopicPerm: PUB|SUB}}
"""


class SecureCluster(Cluster):
    """A name server with the controller inside, and two brokers, none of which takes plain connections."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.authority = Authority(folder)
        self.own = self.authority.issue("member", password=PASSWORD.encode())
        self.people = self.authority.issue("people")
        (folder / "users.yml").write_text(USERS)
        (folder / "secret").write_text(f"{SECRET}\n")
        (folder / "tools.yml").write_text(f"accessKey: administrator\nsecretKey: {SECRET}\n")
        self.common = {
            "tls.server.mode": "ENFORCING",
            "tls.server.certPath": self.own.certificate,
            "tls.server.keyPath": self.own.key,
            "tls.server.keyPassword": PASSWORD,
            "tls.server.need.client.auth": "REQUIRE",
            "tls.server.trustCertPath": self.authority.trust,
            "tls.enable": "true",
            "tls.client.certPath": self.own.certificate,
            "tls.client.keyPath": self.own.key,
            "tls.client.keyPassword": PASSWORD,
            "tls.client.trustCertPath": self.authority.trust,
            "aclEnable": "true",
            "aclFile": "users.yml",
            "accessKey": "cluster-process",
            "secretKeyFile": "secret",
        }
        super().__init__(folder, stack)

    def start(self, name: str, role: str, **parameters: str) -> Any:
        """Start a process, as all others are secured."""
        return super().start(name, role, **parameters, **self.common)

    def tls(self, own: Files | None = None) -> list[str]:
        """The options that say so on a command line."""
        own = own or self.people
        return ["--tls-ca", self.authority.trust, "--tls-cert", own.certificate, "--tls-key", own.key]

    @property
    def user(self) -> list[str]:
        """The administrator."""
        return ["--tools-file", str(self.folder / "tools.yml")]

    def run(self, *words: str) -> Result:
        """One command, by the administrator."""
        return super().run(*words, *self.tls(), *self.user)

    def as_anybody(self, *words: str) -> Result:
        """One command, as it stands."""
        return CliRunner().invoke(command_line, list(words), env={"NAMESRV_ADDR": self.name_server})


@pytest.fixture(name="cluster", scope="module")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    with ExitStack() as stack:
        yield SecureCluster(tmp_path_factory.mktemp("secure"), stack)


def test_brokers_register_elect_and_replicate(cluster: SecureCluster) -> None:
    done = cluster.run("status", cluster.controller)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["broker-a", "1", cluster.brokers[0], "master"] in [line[:4] for line in lines]
    assert ["broker-a", "2", cluster.brokers[1], "replica", "yes", "yes"] in [line[:6] for line in lines]


def test_the_name_server_knows_them(cluster: SecureCluster) -> None:
    cluster.until(lambda: cluster.run("admin", "health").exit_code == 0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "reset by peer|closed the connection"),
        (["tls"], "may not ask|not signed"),
        (["tls", "client"], "only"),
        (["user"], "reset by peer|closed the connection"),
    ],
    ids=["with nothing", "with TLS alone", "as a client", "with a signature alone"],
)
def test_who_lacks_either_is_refused(cluster: SecureCluster, words: list[str], told: str) -> None:
    said = ["admin", "getControllerConfig", "-a", cluster.controller]
    said += cluster.tls() if "tls" in words else []
    said += cluster.user if "user" in words else []
    if "client" in words:
        said += ["--access-key", "only-a-client", "--secret-key-file", str(cluster.folder / "secret")]
    done = cluster.as_anybody(*said)
    assert done.exit_code != 0
    assert any(each in done.output for each in told.split("|")), done.output


def test_a_certificate_of_a_stranger_is_refused(cluster: SecureCluster) -> None:
    folder = cluster.folder / "strangers"
    folder.mkdir()
    stranger = Authority(folder, "stranger").issue("somebody")
    words = ["admin", "getControllerConfig", "-a", cluster.controller, *cluster.user]
    assert cluster.as_anybody(*words, *cluster.tls(stranger)).exit_code != 0
    logged = (cluster.folder / "nameserver.err").read_text()
    assert "peer refused" in logged


def test_replication_has_tls_too(cluster: SecureCluster) -> None:
    routes = cluster.run("admin", "haStatus", "-b", cluster.brokers[0], "--format", "json")
    assert routes.exit_code == 0, routes.output
    told = json.loads(routes.stdout)
    assert told, routes.output
    # Whoever begins to copy without TLS hears nothing.
    where = cluster.told["broker-1"]["broker"]["ha"]
    host, _, port = where.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        plain.sendall(bytes(8))
        with suppress(ConnectionResetError):
            assert plain.recv(1) == b""
    context = ssl.create_default_context(cafile=cluster.authority.trust)
    context.load_cert_chain(cluster.people.certificate, cluster.people.key)
    opened = socket.create_connection((host, int(port)), timeout=10)
    with opened, context.wrap_socket(opened, server_hostname=host) as sealed:
        assert sealed.version() == "TLSv1.3"


def test_no_secret_is_in_any_log_or_answer(cluster: SecureCluster) -> None:
    done = cluster.run("admin", "getControllerConfig", "-a", cluster.controller)
    assert done.exit_code == 0, done.output
    assert "tls.server.keyPassword" in done.output
    texts = [done.output] + [path.read_text() for path in cluster.folder.glob("*.err")]
    assert len(texts) > 3
    for text in texts:
        assert SECRET not in text
        assert PASSWORD not in text


def test_users_are_taken_away_while_it_runs(cluster: SecureCluster) -> None:
    users = cluster.folder / "users.yml"
    said = ["admin", "getControllerConfig", "-a", cluster.controller]
    assert cluster.run(*said).exit_code == 0
    users.write_text(USERS.replace("admin: true", "admin: false"))
    try:
        assert until(lambda: cluster.run(*said).exit_code != 0 or None, wait_s=WAIT_S, pause_s=0.05)
    finally:
        users.write_text(USERS)
    cluster.until(lambda: cluster.run(*said).exit_code == 0)


def test_three_controllers_agree_with_tls_and_signatures(cluster: SecureCluster) -> None:
    """The members' messages are signed requests on sealed connections, in both directions."""
    ports = free_ports((0, 1, 2))
    peers = ";".join(f"n{number}-127.0.0.1:{port}" for number, port in enumerate(ports, start=1))
    for number in (1, 2, 3):
        cluster.start(
            f"controller-{number}",
            "controller",
            controllerDLegerGroup="secured",
            controllerDLegerPeers=peers,
            controllerDLegerSelfId=f"n{number}",
            controllerStorePath=f"controller-store-{number}",
        )
    asked = ["admin", "members", "list", "--at", f"127.0.0.1:{ports[0]}"]
    # One leads and the two others vote: before an election all three are said to vote, and nobody leads.
    assert until(lambda: cluster.run(*asked).output.count("votes") == 2 or None, wait_s=WAIT_S, pause_s=0.1)
    # A certificate without the right of a process of the cluster is not enough to be told of them.
    client = ["--access-key", "only-a-client", "--secret-key-file", str(cluster.folder / "secret")]
    done = cluster.as_anybody(*asked, *cluster.tls(), *client)
    assert "only processes of the cluster may ask this" in done.output
    for number in (1, 2, 3):
        assert SECRET not in (cluster.folder / f"controller-{number}.err").read_text()
