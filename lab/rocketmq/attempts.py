"""`make attempts`: forty attempts of somebody who may not, against controller, broker and name server of ours
and of Apache RocketMQ, as it is by default and with its own authentication.

What each was answered, and whether anything changed, is a table. Ours must refuse every one, whoever signed
it, tell of it once, and change nothing: exit code 1 when it does not.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.cluster import BROKER_NAME, CLUSTER_NAME, Cluster, Settings, end_in_order
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.rocketmq import settings
from lab.rocketmq.apache import Apache
from lab.rocketmq.peer import Peer, Signer
from lab.rocketmq.roles import OURS, RocketmqSubject
from lab.rocketmq.serving import BROKER, CONTROLLER, NAMESERVER
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import name_of
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import TEMPLATE_TOPIC
from replispec.wire.rocketmq.controller import BrokerNames
from replispec.wire.rocketmq.ha import HaHandshakeId

RELEASE: Final = "5.4.0"
SECRET: Final = "a-secret-of-the-lab"
TOPIC, GROUP = "AttemptedTopic", "AttemptedGroup"
HANDSHAKE: Final = "handshake of replication"
START_S: Final = 120.0
ANSWER_S: Final = 3.0
JAVA_AUTH: Final = "org.apache.rocketmq.auth."
USERS_OF_JAVA: Final = "initAuthenticationUser"
NAMED: Final = {"clusterName": CLUSTER_NAME, "brokerName": BROKER_NAME}
SENT: Final = {
    "producerGroup": GROUP,
    "topic": TOPIC,
    "defaultTopic": TEMPLATE_TOPIC,
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1",
    "flag": "0",
    "properties": "",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}
# The same with the short keys of the second form.
SHORT: Final = dict(zip("abcdefghijkm", SENT.values(), strict=False))
READ: Final = {"topic": TOPIC, "consumerGroup": GROUP, "queueId": "0"}
ELSEWHERE: Final = f"{LOOPBACK}:1"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to one role; without a code, the handshake of replication."""

    role: str
    code: RequestCode | None
    fields: Mapping[str, str]
    body: bytes = b""

    @property
    def name(self) -> str:
        """As it is told."""
        return HANDSHAKE if self.code is None else f"{name_of(self.code, RequestCode)} ({int(self.code)})"


def _attempts() -> Iterator[Attempt]:
    """What only looks comes first, what destroys most comes last."""
    code = RequestCode
    pulled = {**READ, "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0"}
    pulled |= {"suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0", "expressionType": "TAG"}
    set_named = BrokerNames(names=[BROKER_NAME]).encode()
    registered = {**NAMED, "brokerId": "7", "brokerAddress": ELSEWHERE, "invokeTime": "1"}
    known = {"brokerName": BROKER_NAME, "brokerAddr": ELSEWHERE, "clusterName": CLUSTER_NAME}
    for asked in (code.CONTROLLER_GET_METADATA_INFO, code.GET_CONTROLLER_CONFIG):
        yield Attempt(CONTROLLER, asked, {})
    yield Attempt(CONTROLLER, code.CONTROLLER_GET_REPLICA_INFO, {"brokerName": BROKER_NAME})
    yield Attempt(CONTROLLER, code.CONTROLLER_GET_SYNC_STATE_DATA, {}, set_named)
    yield Attempt(CONTROLLER, code.CONTROLLER_GET_NEXT_BROKER_ID, NAMED)
    for asked in (
        code.GET_ALL_TOPIC_CONFIG,
        code.GET_BROKER_CONFIG,
        code.GET_BROKER_RUNTIME_INFO,
        code.GET_ALL_CONSUMER_OFFSET,
        code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        code.GET_BROKER_HA_STATUS,
        code.GET_BROKER_EPOCH_CACHE,
    ):
        yield Attempt(BROKER, asked, {})
    yield Attempt(BROKER, code.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
    yield Attempt(BROKER, code.GET_TOPIC_STATS_INFO, {"topic": TOPIC})
    yield Attempt(BROKER, code.GET_TOPIC_CONFIG, {"topic": TOPIC})
    yield Attempt(BROKER, code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": GROUP})
    yield Attempt(BROKER, code.QUERY_CONSUMER_OFFSET, READ)
    yield Attempt(BROKER, code.PULL_MESSAGE, pulled)
    for asked in (code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, code.GET_NAMESRV_CONFIG):
        yield Attempt(NAMESERVER, asked, {})
    yield Attempt(BROKER, None, {})
    yield from _changing(registered, known)


def _changing(registered: Mapping[str, str], known: Mapping[str, str]) -> Iterator[Attempt]:
    code = RequestCode
    made = {"topic": "Unwanted", "defaultTopic": TEMPLATE_TOPIC, "readQueueNums": "1", "writeQueueNums": "1"}
    made |= {"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
    reset = {"topic": TOPIC, "group": GROUP, "timestamp": "0", "isForce": "true"}
    clients = json.dumps({"clientID": "somebody", "consumerDataSet": [{"groupName": GROUP}]}).encode()
    yield Attempt(BROKER, code.HEART_BEAT, {}, clients)
    yield Attempt(BROKER, code.UPDATE_CONSUMER_OFFSET, {**READ, "commitOffset": "1"})
    yield Attempt(BROKER, code.SEND_MESSAGE, SENT, b"unwanted")
    yield Attempt(BROKER, code.SEND_MESSAGE_V2, SHORT, b"unwanted")
    yield Attempt(BROKER, code.UPDATE_AND_CREATE_TOPIC, made)
    group = json.dumps({"groupName": "Unwanted"}).encode()
    yield Attempt(BROKER, code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)
    yield Attempt(BROKER, code.INVOKE_BROKER_TO_RESET_OFFSET, reset)
    yield Attempt(BROKER, code.UPDATE_BROKER_CONFIG, {}, b"messageDelayLevel=1s\n")
    yield Attempt(NAMESERVER, code.REGISTER_BROKER, {**known, "brokerName": "unwanted", "brokerId": "0"})
    yield Attempt(NAMESERVER, code.UNREGISTER_BROKER, {**known, "brokerId": "0"})
    yield Attempt(NAMESERVER, code.UPDATE_NAMESRV_CONFIG, {}, b"orderMessageEnable=true\n")
    yield Attempt(
        CONTROLLER,
        code.CONTROLLER_APPLY_BROKER_ID,
        {**NAMED, "appliedBrokerId": "2"} | {"registerCheckCode": f"{ELSEWHERE};1"},
    )
    yield Attempt(CONTROLLER, code.CONTROLLER_REGISTER_BROKER, registered)
    alive = {**known, "brokerId": "2", "epoch": "1", "maxOffset": "1", "confirmOffset": "1"}
    yield Attempt(CONTROLLER, code.BROKER_HEARTBEAT, {**alive, "heartbeatTimeoutMills": "10000"})
    members = json.dumps({"syncStateSet": [1, 2], "syncStateSetEpoch": 1}).encode()
    altered = {"brokerName": BROKER_NAME, "masterBrokerId": "1", "masterEpoch": "1", "invokeTime": "1"}
    yield Attempt(CONTROLLER, code.CONTROLLER_ALTER_SYNC_STATE_SET, altered, members)
    body = b"enableElectUncleanMaster=true\n"
    yield Attempt(CONTROLLER, code.UPDATE_CONTROLLER_CONFIG, {}, body)
    elected = {**NAMED, "brokerId": "2", "designateElect": "true", "invokeTime": "1"}
    yield Attempt(CONTROLLER, code.CONTROLLER_ELECT_MASTER, elected)
    cleaned = {**NAMED, "isCleanLivingBroker": "true", "invokeTime": "1"}
    yield Attempt(CONTROLLER, code.CLEAN_BROKER_DATA, cleaned)
    role = {"masterAddress": ELSEWHERE, "masterBrokerId": "7", "masterEpoch": "9", "syncStateSetEpoch": "9"}
    yield Attempt(BROKER, code.NOTIFY_BROKER_ROLE_CHANGED, role, members)


ATTEMPTS: Final = tuple(_attempts())


@dataclass(frozen=True, slots=True)
class Target:
    """Roles of one implementation, configured in one way; `sign` is the administrator's."""

    name: str
    subject: RocketmqSubject
    more: Callable[[Path], Settings]
    sign: Signer | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt."""

    answer: str
    changed: bool

    @property
    def is_refused(self) -> bool:
        """Whether it was answered that it may not or that nobody knows it, or not at all, and nothing
        changed."""
        return self.answer in (NO_PERMISSION, CLOSED, UNKNOWN) and not self.changed

    def __str__(self) -> str:
        return f"{self.answer}{', **changed**' if self.changed else ''}"


NO_PERMISSION, UNKNOWN = ResponseCode.NO_PERMISSION.name, ResponseCode.REQUEST_CODE_NOT_SUPPORTED.name
CLOSED, SILENT = "closed", "no answer"


class Running:
    """A target that runs."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self.cluster, self.target = cluster, target
        more = target.more(cluster.part("data"))
        own = {NAMESERVER: settings.nameserver(cluster), CONTROLLER: settings.controller(cluster)}
        own[BROKER] = settings.broker(cluster, BROKER)
        replication = {"haAllowedHosts": "10.0.0.1"} if target.subject is OURS and more else {}
        for role, values in own.items():
            # Java's keep their users in a database, each process its own.
            apart = {"authConfigPath": cluster.part("data", role) / "auth"}
            added = {**more, **(apart if USERS_OF_JAVA in more else {})}
            added |= replication if role == BROKER else {}
            cluster.start(target.subject, role, role, {**values, **added})
        cluster.until(self._serves, "a master that the controller knows", patience_s=START_S)

    def _serves(self) -> bool | None:
        asked = self._asked(CONTROLLER, RequestCode.CONTROLLER_GET_REPLICA_INFO, {"brokerName": BROKER_NAME})
        known = (asked.header.ext_fields or {}).get("masterBrokerId")
        epochs = self._asked(BROKER, RequestCode.GET_BROKER_EPOCH_CACHE, {})
        with Peer(LOOPBACK, self.cluster.port(NAMESERVER), self.target.sign) as peer:
            routed = peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO).body
        is_whole = known == "1" and b'"epoch"' in epochs.body and BROKER_NAME.encode() in routed
        if is_whole:
            self._asked(BROKER, RequestCode.SEND_MESSAGE_V2, SHORT, b"one that is there")
        return is_whole or None

    def _asked(self, role: str, code: RequestCode, fields: Mapping[str, str], body: bytes = b"") -> Command:
        with Peer(LOOPBACK, self.cluster.port(role), self.target.sign) as peer:
            return peer.ask_fields(code, dict(fields), body)

    def state(self) -> Sequence[bytes]:
        """What an administrator sees of all roles, but what changes by itself."""
        code, names = RequestCode, BrokerNames(names=[BROKER_NAME]).encode()
        looked = [
            (CONTROLLER, code.CONTROLLER_GET_SYNC_STATE_DATA, {}, names),
            (CONTROLLER, code.GET_CONTROLLER_CONFIG, {}, b""),
            (CONTROLLER, code.CONTROLLER_GET_NEXT_BROKER_ID, NAMED, b""),
            (BROKER, code.GET_BROKER_EPOCH_CACHE, {}, b""),
            (BROKER, code.GET_ALL_TOPIC_CONFIG, {}, b""),
            (BROKER, code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, {}, b""),
            (BROKER, code.GET_ALL_CONSUMER_OFFSET, {}, b""),
            (BROKER, code.GET_BROKER_CONFIG, {}, b""),
            (NAMESERVER, code.GET_BROKER_CLUSTER_INFO, {}, b""),
            (NAMESERVER, code.GET_NAMESRV_CONFIG, {}, b""),
        ]
        found = []
        for role, asked, fields, body in looked:
            try:
                answer = self._asked(role, asked, fields, body)
                told = sorted((key, value or "") for key, value in (answer.header.ext_fields or {}).items())
                found.append(answer.body + repr(told).encode())
            except (OSError, RemoteProtocolError) as error:
                found.append(type(error).__name__.encode())
        return found

    def attempt(self, attempt: Attempt, sign: Signer | None) -> Outcome:
        """Carry one out, as whoever signs."""
        before = self.state()
        answer = self._handshake() if attempt.code is None else self._answer(attempt, sign)
        return Outcome(answer, self.state() != before)

    def _answer(self, attempt: Attempt, sign: Signer | None) -> str:
        assert attempt.code is not None
        try:
            with Peer(LOOPBACK, self.cluster.port(attempt.role), sign) as peer:
                answer = peer.ask_fields(attempt.code, dict(attempt.fields), attempt.body)
        except TimeoutError:
            return SILENT
        except (OSError, RemoteProtocolError):
            return CLOSED
        return _named(answer.header.code)

    def _handshake(self) -> str:
        where = (LOOPBACK, self.cluster.ha_port(BROKER))
        try:
            with socket.create_connection(where, timeout=ANSWER_S) as opened:
                opened.sendall(bytes(HaHandshakeId(broker_id=9).encode()))
                return "answered" if opened.recv(1) else CLOSED
        except TimeoutError:
            return SILENT
        except OSError:
            return CLOSED


def _named(code: int) -> str:
    """The name of an answer in the release that is tried: earlier ones had other names for some numbers."""
    names = (
        name for name, each in ResponseCode.__members__.items() if each == code and "_UNTIL_" not in name
    )
    return next(names, str(code))


def _users(folder: Path) -> Settings:
    """Ours, with three users."""
    accounts = [
        {"accessKey": "administrator", "secretKey": SECRET, "admin": True},
        {"accessKey": "cluster-process", "secretKey": SECRET, "role": "broker"},
        {"accessKey": "only-a-client", "secretKey": SECRET, "topicPerms": ["Another=PUB|SUB"]},
    ]
    file = folder / "users.yml"
    file.write_text(json.dumps({"accounts": accounts}))
    own = {"accessKey": "cluster-process", "secretKey": SECRET}
    return {"aclEnable": "true", "aclFile": file, **own}


def _java_authentication(_: Path) -> Settings:
    """Apache RocketMQ's own: every role is told of it."""
    authentication = f"{JAVA_AUTH}authentication.provider."
    authorization = f"{JAVA_AUTH}authorization.provider."
    return {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{authentication}DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{authentication}LocalAuthenticationMetadataProvider",
        USERS_OF_JAVA: json.dumps({"username": "administrator", "password": SECRET}),
        "innerClientAuthenticationCredentials": json.dumps(
            {"accessKey": "administrator", "secretKey": SECRET}
        ),
        "authorizationEnabled": "true",
        "authorizationProvider": f"{authorization}DefaultAuthorizationProvider",
        "authorizationMetadataProvider": f"{authorization}LocalAuthorizationMetadataProvider",
    }


ADMINISTRATOR: Final = Signer("administrator", SECRET)
WHO: Final[Mapping[str, Signer | None]] = {
    "not signed": None,
    "signed wrongly": Signer("administrator", "another-secret"),
    "a client without the right": Signer("only-a-client", SECRET),
}
TARGETS: Final = (
    Target("ours, aclEnable", OURS, _users, ADMINISTRATOR),
    Target("Java, by default", Apache(RELEASE), lambda _: {}, None),
    Target("Java, authentication and authorization", Apache(RELEASE), _java_authentication, ADMINISTRATOR),
)


def _played(folder: Path, target: Target) -> Sequence[Sequence[Outcome]]:
    """For each attempt what came of it, by who signed."""
    target.subject.fetch()
    Cluster.remove_earlier(folder)
    signers = tuple(WHO.values()) if target.subject is OURS else (None,)
    with Cluster(folder) as cluster:
        running = Running(cluster, target)
        found = [[running.attempt(each, sign) for sign in signers] for each in ATTEMPTS]
    if target.subject is OURS:
        _demand_lines(cluster, found)
    return found


def _demand_lines(cluster: Cluster, found: Sequence[Sequence[Outcome]]) -> None:
    """Each attempt is one line in the log of its role, written or counted as left out. Raises LabError."""
    for role in (CONTROLLER, BROKER, NAMESERVER):
        text = (cluster.part("log") / f"{role}.out").read_text()
        lines = [json.loads(line) for line in text.splitlines() if '"request refused"' in line]
        told = [line for line in lines if line["what"] == "request refused"]
        left_out = sum(line["lines"] for line in lines if line not in told)
        rows = (row for attempt, row in zip(ATTEMPTS, found, strict=True) if attempt.role == role)
        wanted = sum(each.answer == NO_PERMISSION for row in rows for each in row)
        if len(told) + left_out != wanted or any(line["times"] != 1 for line in told):
            raise LabError(f"{role}: {len(told)} lines of refusals, {left_out} left out, {wanted} attempts")
        if role == BROKER and text.count('"replica refused"') != 1:
            raise LabError("the handshakes of replication are not one line")


def table(found: Mapping[str, Sequence[Sequence[Outcome]]]) -> Iterator[str]:
    """One row for each attempt; of ours what was answered to all who signed, once when it is the same."""
    yield f"| asked of | attempt | {' | '.join(found)} |"
    yield f"| --- | --- |{' --- |' * len(found)}"
    for at, attempt in enumerate(ATTEMPTS):
        cells = (" / ".join(dict.fromkeys(map(str, rows[at]))) for rows in found.values())
        yield f"| {attempt.role} | {attempt.name} | {' | '.join(cells)} |"
    counts = (str(sum(all(each.is_refused for each in row) for row in rows)) for rows in found.values())
    yield f"| | refused, of {len(ATTEMPTS)} | {' | '.join(counts)} |"


def main() -> int:
    """Exit code 1 when ours serves what it must refuse; 3 when something is missing."""
    parser = argparse.ArgumentParser(prog="make attempts", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/attempts"))
    parser.add_argument("--ours", action="store_true", help="only against ours")
    arguments = parser.parse_args()
    end_in_order()
    found: dict[str, Sequence[Sequence[Outcome]]] = {}
    try:
        for number, target in enumerate(TARGETS[:1] if arguments.ours else TARGETS):
            found[target.name] = _played(arguments.out / str(number), target)
    except LabError as error:
        print(f"attempts: {error}", file=sys.stderr)
        return error.exit_code
    text = "\n".join(table(found))
    (arguments.out / "table.md").write_text(f"{text}\n")
    print(text)
    own = found[TARGETS[0].name]
    return int(not all(each.is_refused for row in own for each in row))


if __name__ == "__main__":
    sys.exit(main())
