"""What a secured cluster of the lab has: certificates, users, and where none of their secrets may appear."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.certificates import Authority, Files
from lab.cluster import Cluster, Settings
from lab.ports import LOOPBACK
from lab.rocketmq.apache import Apache

ADMINISTRATOR, PROCESS, CLIENT, READER = "administrator", "cluster-process", "orders-client", "orders-reader"
SECRET_BYTES = 24
# Files in which a secret stands because it is configured there.
CONFIGURED = ("users.yml", "tools.yml")
SECRET_SUFFIX = ".secret"
JAVA_METADATA = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
# A database below the data of Java's broker, in which its users stand with their secrets.
JAVA_USERS = "auth"


@dataclass(frozen=True, slots=True)
class Security:
    """Certificates of one authority, and users with secrets that nobody else has."""

    folder: Path
    authority: Authority
    own: Files
    secrets: dict[str, str]

    @classmethod
    def made(cls, cluster: Cluster, topic: str, groups: Sequence[str]) -> Security:
        """All files of it, below `conf` of the cluster; the client may use a topic and these groups."""
        folder = cluster.part("conf")
        authority = Authority(folder)
        users = {name: secrets.token_hex(SECRET_BYTES) for name in (ADMINISTRATOR, PROCESS, CLIENT, READER)}
        made = cls(folder, authority, authority.issue("member"), users)
        for name, secret in users.items():
            made.secret_file(name).write_text(f"{secret}\n")
        rights: dict[str, dict[str, object]] = {
            ADMINISTRATOR: {"admin": True},
            PROCESS: {"role": "broker"},
            CLIENT: {"topicPerms": [f"{topic}=PUB|SUB"], "groupPerms": [f"{each}=SUB" for each in groups]},
            READER: {"topicPerms": [f"{topic}=SUB"], "groupPerms": [f"{each}=SUB" for each in groups]},
        }
        accounts = [{"accessKey": name, "secretKey": users[name], **rights[name]} for name in users]
        (folder / "users.yml").write_text(json.dumps({"accounts": accounts}, indent=1))
        # mqadmin looks for it below the home of RocketMQ, which is the cluster's folder.
        named = f"accessKey: {ADMINISTRATOR}\nsecretKey: {users[ADMINISTRATOR]}\n"
        (folder / "tools.yml").write_text(named)
        return made

    def secret_file(self, user: str) -> Path:
        """Where the secret of a user lies."""
        return self.folder / f"{user}{SECRET_SUFFIX}"

    def ours(self, *, shown: str = "OPTIONAL") -> Settings:
        """Parameters of each process of ours; `shown`: whether whoever connects must show a certificate."""
        return {
            "tls.server.mode": "ENFORCING",
            "tls.server.certPath": self.own.certificate,
            "tls.server.keyPath": self.own.key,
            "tls.server.need.client.auth": shown,
            "tls.server.trustCertPath": self.authority.trust,
            "tls.enable": "true",
            "tls.client.certPath": self.own.certificate,
            "tls.client.keyPath": self.own.key,
            "tls.client.trustCertPath": self.authority.trust,
            "aclEnable": "true",
            "aclFile": self.folder / "users.yml",
            "accessKey": PROCESS,
            "secretKeyFile": self.secret_file(PROCESS),
        }

    def of_replication(self) -> Settings:
        """Of a broker of ours in a set that has one of Java's, which knows no TLS there."""
        return {"tlsReplication": "false", "haAllowedHosts": LOOPBACK}

    def java_options(self) -> tuple[str, ...]:
        """System properties of a process of Java's: TLS in both directions, with certificates."""
        return (
            *("-Dtls.enable=true", "-Dtls.test.mode.enable=false", "-Dtls.server.mode=enforcing"),
            *("-Dtls.client.authServer=true", f"-Dtls.client.trustCertPath={self.authority.trust}"),
            *(f"-Dtls.client.certPath={self.own.certificate}", f"-Dtls.client.keyPath={self.own.key}"),
            *(f"-Dtls.server.certPath={self.own.certificate}", f"-Dtls.server.keyPath={self.own.key}"),
        )

    def signed_as(self, user: str, secret_of: str = "") -> tuple[str, ...]:
        """System properties of the lab's client: as whom it signs, perhaps with the secret of another one."""
        return (f"-Dlab.accessKey={user}", f"-Dlab.secretKeyFile={self.secret_file(secret_of or user)}")

    def of_java_broker(self, data: Path) -> Settings:
        """How a broker of Java's signs what it asks of others: as a user of its own metadata, which it keeps
        in a database even where it asks nobody for a signature."""
        signer = {"accessKey": PROCESS, "secretKey": self.secrets[PROCESS]}
        return {
            "innerClientAuthenticationCredentials": json.dumps(signer),
            "authenticationMetadataProvider": JAVA_METADATA,
            "authConfigPath": data / JAVA_USERS,
        }

    def words(self, user: str = ADMINISTRATOR) -> list[str]:
        """Options of `replispec status` and `admin`."""
        tls = ["--tls-ca", self.authority.trust, "--tls-cert", self.own.certificate]
        return [
            *(*tls, "--tls-key", self.own.key),
            *("--access-key", user, "--secret-key-file", str(self.secret_file(user))),
        ]

    def found_in(self, folder: Path, told: Sequence[str]) -> Iterator[str]:
        """The files of a folder in which a secret stands that is not configured there, with whose secret it
        is; `told` are names of files that were configured with one."""
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            if path.name in (*CONFIGURED, *told) or path.suffix == SECRET_SUFFIX:
                continue
            data = path.read_bytes()
            for user, secret in self.secrets.items():
                if secret.encode() in data:
                    yield f"{path.relative_to(folder)} ({user})"


class SealedApache(Apache):
    """The same release, each of whose programs is given further system properties."""

    def __init__(self, release: str, options: Sequence[str]) -> None:
        super().__init__(release)
        self.options = tuple(options)

    def java(self, cluster: Cluster, name: str, *options: str, classes: Path | None = None) -> list[str]:
        """See Apache.java."""
        return super().java(cluster, name, *self.options, *options, classes=classes)
