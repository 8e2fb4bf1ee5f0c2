"""Whoever may not ask is refused by every role, told so, told of once, and changes nothing."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from replispec.runtime.net.log_shell import Log
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq.access import RequestGuard, Signer, replica_hosts, security_of
from replispec.runtime.rocketmq.access.rarely_told import KINDS_MAX, RarelyTold
from replispec.runtime.rocketmq.remoting.server import REFUSALS_MAX
from replispec.runtime.sim import Disk, Rng
from replispec.runtime.sim.journal import SimulatedStorage
from replispec.runtime.world import (
    Accepted,
    Close,
    Connected,
    Dial,
    FileRead,
    Level,
    Note,
    Outbox,
    Received,
    Send,
    Started,
    Ticked,
)
from replispec.wire.raft.rights import NEEDS as MEMBERS_NEED
from replispec.wire.rocketmq import rights
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import (
    ACCESS_KEY,
    ACL_FILE_CHARACTERS_MAX,
    REFUSED_LINE_MS,
    SIGNATURE_KEY,
    UNSIGNED_KEY,
)
from replispec.wire.rocketmq.options import AccessOptions, BrokerOptions, LearnerOptions, TlsOptions
from tests.runtime.access.attempts import (
    ACCESS,
    ADMINISTRATOR,
    ALL_NEEDS,
    BROKER,
    CLIENT,
    FILE,
    LIAR,
    LISTENERS,
    SECRET,
    STRANGER,
    USERS,
    Stage,
    answers,
    is_closed,
    made,
    notes,
    request,
)

OF_THE_CLUSTER = {rights.BROKER, rights.ADMINISTRATOR}
RESTRICTED = sorted(
    code for code, needs in ALL_NEEDS.items() if {each.right for each in needs} & OF_THE_CLUSTER
)
WHO = {
    "without a signature": (None, "not signed"),
    "with a key that nobody has": (STRANGER, "signature is wrong"),
    "with a wrong signature": (LIAR, "signature is wrong"),
}


@pytest.fixture(name="stages", scope="module")
def _stages() -> dict[str, Stage]:
    return {role: Stage(made(role)).start() for role in LISTENERS}


def _refused(stage: Stage, code: int, signed: Signer | None, reason: str) -> None:
    """It is answered that it may not, a line tells of it, and nothing else comes of it, whatever it says."""
    stage.connect()
    stage.now_ms += REFUSED_LINE_MS
    stage.give(Ticked(stage.now_ms))
    fields: dict[str, Any] = {
        "topic": "other",
        "b": "other",
        "consumerGroup": "other",
        "designateElect": "true",
    }
    effects = stage.ask(request(code, **fields), signed=signed)
    (answer,) = answers(effects)
    assert answer.header.code == ResponseCode.NO_PERMISSION
    assert reason in (answer.header.remark or "")
    (note,) = notes(effects, "request refused")
    assert reason in str(note.values["reason"])
    assert SECRET not in str(note)
    assert len(effects) == 2, effects
    # A one-way request is not answered, and is told of by the same line.
    assert not stage.ask(request(code, flag=RemotingFlag.ONEWAY, **fields), signed=signed)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("code", sorted(ALL_NEEDS))
@pytest.mark.parametrize("role", LISTENERS)
def test_who_cannot_prove_who_it_is_is_refused(
    stages: dict[str, Stage], role: str, code: int, who: str
) -> None:
    signed, reason = WHO[who]
    _refused(stages[role], code, signed, reason)


@pytest.mark.parametrize(
    ("role", "code"),
    # Nobody but a controller knows what members tell each other.
    [
        (role, code)
        for role in LISTENERS
        for code in RESTRICTED
        if role == "controller" or code not in MEMBERS_NEED
    ],
)
def test_a_client_asks_nothing_that_is_of_the_cluster(stages: dict[str, Stage], role: str, code: int) -> None:
    _refused(stages[role], code, CLIENT, "only ")


@pytest.mark.parametrize("role", LISTENERS)
def test_a_broker_asks_nothing_that_is_of_an_administrator(stages: dict[str, Stage], role: str) -> None:
    for code in RESTRICTED:
        if rights.ADMINISTRATOR in {each.right for each in ALL_NEEDS[code]}:
            _refused(stages[role], code, BROKER, "only an administrator")


@pytest.mark.parametrize("role", LISTENERS)
def test_an_administrator_is_never_refused(stages: dict[str, Stage], role: str) -> None:
    stage = stages[role].connect()
    for code in sorted(ALL_NEEDS):
        effects = stage.ask(request(code), signed=ADMINISTRATOR)
        assert not notes(effects, "request refused"), code


def test_every_request_says_what_it_needs() -> None:
    from replispec.wire.rocketmq.commands import REQUEST_SENDERS

    assert REQUEST_SENDERS.keys() <= ALL_NEEDS.keys()
    assert all(ALL_NEEDS.values())


@pytest.mark.parametrize(
    ("code", "fields", "body", "may"),
    [
        (RequestCode.SEND_MESSAGE, {"topic": "written"}, b"", True),
        (RequestCode.SEND_MESSAGE, {"topic": "read"}, b"", False),
        (RequestCode.SEND_MESSAGE_V2, {"b": "both"}, b"", True),
        (RequestCode.SEND_MESSAGE_V2, {"b": "else"}, b"", False),
        (RequestCode.SEND_BATCH_MESSAGE, {"b": "read"}, b"", False),
        (RequestCode.SEND_MESSAGE_V2, {"b": "%RETRY%mine"}, b"", True),
        (RequestCode.SEND_MESSAGE_V2, {"b": "%RETRY%else"}, b"", False),
        (RequestCode.PULL_MESSAGE, {"topic": "read", "consumerGroup": "mine"}, b"", True),
        (RequestCode.PULL_MESSAGE, {"topic": "%RETRY%mine", "consumerGroup": "mine"}, b"", True),
        (RequestCode.PULL_MESSAGE, {"topic": "written", "consumerGroup": "mine"}, b"", False),
        (RequestCode.PULL_MESSAGE, {"topic": "read", "consumerGroup": "else"}, b"", False),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "read", "consumerGroup": "mine"}, b"", True),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "read", "consumerGroup": "else"}, b"", False),
        (RequestCode.HEART_BEAT, {}, b'{"consumerDataSet":[{"groupName":"mine"}]}', True),
        (RequestCode.HEART_BEAT, {}, b'{"producerDataSet":[{"groupName":"else"}]}', True),
        (
            RequestCode.HEART_BEAT,
            {},
            b'{"consumerDataSet":[{"groupName":"mine"},{"groupName":"else"}]}',
            False,
        ),
        (
            RequestCode.HEART_BEAT,
            {},
            b'{"consumerDataSet":[{"groupName":"mine","subscriptionDataSet":[{"topic":"written"}]}]}',
            False,
        ),
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "else"}, b"", False),
        (RequestCode.UNREGISTER_CLIENT, {"clientID": "c"}, b"", True),
    ],
)
def test_a_client_has_the_rights_that_it_was_given(
    stages: dict[str, Stage], code: int, fields: dict[str, Any], body: bytes, may: bool
) -> None:
    stage = stages["broker"].connect()
    answer = stage.answer(request(code, body=body, **fields), signed=CLIENT)
    assert (answer.header.code != ResponseCode.NO_PERMISSION) is may


def test_what_is_not_signed_over_changes_the_signature(stages: dict[str, Stage]) -> None:
    stage = stages["controller"].connect()
    whole = request(RequestCode.CONTROLLER_GET_METADATA_INFO, a="1")
    signed = ADMINISTRATOR(whole.header.ext_fields, whole.body)
    for name, fields, body in (
        ("as it was", signed, b""),
        ("with a field more", {**signed, "b": "2"}, b""),
        ("with another value", {**signed, "a": "2"}, b""),
        ("with a body", signed, b"more"),
        ("of another user", {**signed, ACCESS_KEY: "a-broker"}, b""),
        ("without a signature", {**signed, SIGNATURE_KEY: None}, b""),
        ("with what Java adds later", {**signed, UNSIGNED_KEY: "true"}, b""),
    ):
        changed = request(RequestCode.CONTROLLER_GET_METADATA_INFO, body=body)
        changed.header.ext_fields = dict(fields)
        is_refused = stage.answer(changed).header.code == ResponseCode.NO_PERMISSION
        assert is_refused is (name not in ("as it was", "with what Java adds later")), name


def test_the_same_refusal_is_one_line_a_minute(stages: dict[str, Stage]) -> None:
    stage = stages["nameserver"].connect("10.1.1.1:1")
    asked = request(RequestCode.GET_BROKER_CLUSTER_INFO)
    assert len(notes(stage.ask(asked), "request refused")) == 1
    for _ in range(20):
        assert not notes(stage.ask(asked), "request refused")
    stage.now_ms += REFUSED_LINE_MS
    (note,) = notes(stage.ask(asked), "request refused")
    assert note.values["times"] == 21


def test_who_goes_on_with_what_it_may_not_is_hung_up_on(stages: dict[str, Stage]) -> None:
    stage = stages["broker"].connect()
    asked = request(RequestCode.GET_BROKER_CONFIG)
    for _ in range(REFUSALS_MAX - 1):
        assert not is_closed(stage.ask(asked, signed=LIAR))
    effects = stage.ask(asked, signed=LIAR)
    assert is_closed(effects)
    assert answers(effects), "the last one is answered before"
    assert len(notes(effects, "peer dropped")) == 1


def test_lines_of_many_kinds_take_bounded_room() -> None:
    lines = RarelyTold()
    told = [lines.due(number, 0) for number in range(10 * KINDS_MAX)]
    assert told.count(1) == KINDS_MAX + 1
    assert lines.due("later", REFUSED_LINE_MS) == 1


UNUSABLE = (
    "globalWhiteRemoteAddresses: !!int ''\n",
    "globalWhiteRemoteAddresses: [!!bool maybe]\n",
    "dataVersion: !!timestamp x\n",
    f"dataVersion: {'[' * 3_000}\n",
    'dataVersion: "\\uD800"\n',
    "dataVersion: 1\ndataVersion: 1\n",
    "accounts: []\n",
    f"globalWhiteRemoteAddresses: [{'1' * 5_000}.0.0.0]\n",
    "#" * ACL_FILE_CHARACTERS_MAX,
)


@pytest.mark.parametrize("role", LISTENERS)
def test_changed_users_count_at_once_and_a_file_that_cannot_be_used_does_not(role: str) -> None:
    stage = Stage(made(role)).start()
    asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="t")

    def read(text: bytes | None) -> list[Note]:
        effects = stage.give(FileRead(FILE, text, stage.now_ms))
        return notes(effects, "changed users taken") + notes(effects, "changed users not taken")

    def is_refused() -> bool:
        return stage.answer(asked, signed=CLIENT).header.code == ResponseCode.NO_PERMISSION

    assert not is_refused()
    half = USERS.encode()[: USERS.index("a-client")]
    for broken in (half, b"\xff", None, *((USERS + more).encode() for more in UNUSABLE)):
        (note,) = read(broken)
        assert note.what == "changed users not taken"
        assert SECRET not in str(note)
        assert not is_refused()
    (note,) = read(USERS.replace("a-client", "another").encode())
    assert note.what == "changed users taken"
    assert is_refused()
    assert not read(USERS.replace("a-client", "another").encode())


def test_a_host_that_is_trusted_needs_no_signature() -> None:
    text = USERS + "globalWhiteRemoteAddresses: [10.9.8.*]\n"
    stage = Stage(made("controller", text=text))
    stage.give(Started(stage.now_ms, dict(stage.member.node.listeners)))
    stage.connect()
    asked = request(RequestCode.CONTROLLER_GET_METADATA_INFO)
    assert stage.answer(asked).header.code == ResponseCode.SUCCESS
    stage.connect("10.9.9.7:1")
    assert stage.answer(asked).header.code == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(
    ("access", "told"),
    [
        (AccessOptions(acl_enable=True), "aclFile"),
        (AccessOptions(access_key="somebody"), "accessKey"),
        (AccessOptions(secret_key=SECRET), "accessKey"),
        (AccessOptions(access_key="somebody", secret_key=SECRET, secret_key_file="f"), "secretKeyFile"),
    ],
)
@pytest.mark.parametrize("role", LISTENERS)
def test_options_that_do_not_go_together_are_refused(role: str, access: AccessOptions, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as failed:
        made(role, access)
    assert SECRET not in str(failed.value)


def test_users_that_cannot_be_read_end_the_start() -> None:
    with pytest.raises(ConfigurationError, match=r"aclFile=users\.yml.*no accounts"):
        made("broker", text="accounts: []")


# Replication


def test_a_replica_is_let_in_by_its_host() -> None:
    stage = Stage(made("broker")).start()
    for number, (peer, is_let_in) in enumerate(
        (("10.0.0.1:1", True), ("10.0.0.2:1", False), ("10.0.0.2:2", False))
    ):
        effects = stage.give(Accepted(100 + number, "ha", peer, stage.now_ms))
        assert Close(100 + number) in effects, "there is no master yet"
        assert bool(notes(effects, "no master: a replica was sent away")) is is_let_in
        assert [each.values["reason"] for each in notes(effects, "replica refused")] == (
            ["it is none of haAllowedHosts"] if number == 1 else []
        )


def test_without_certificates_the_hosts_of_replicas_are_named() -> None:
    named: dict[str, Any] = {"broker_name": "a", "controller_addr": ("127.0.0.1:1",)}
    access = AccessOptions(acl_enable=True, acl_file=FILE)
    with pytest.raises(ConfigurationError, match="haAllowedHosts"):
        replica_hosts(BrokerOptions(**named, access=access))
    with pytest.raises(ConfigurationError, match="names no hosts"):
        replica_hosts(BrokerOptions(**named, access=access, ha_allowed_hosts="anybody"))
    mutual = TlsOptions(tls_server_mode="ENFORCING", tls_server_need_client_auth="REQUIRE")
    assert replica_hosts(BrokerOptions(**named, access=access, tls=mutual)) is None
    plain = TlsOptions(
        tls_server_mode="ENFORCING", tls_server_need_client_auth="REQUIRE", tls_replication=False
    )
    with pytest.raises(ConfigurationError, match="haAllowedHosts"):
        replica_hosts(BrokerOptions(**named, access=access, tls=plain))
    assert replica_hosts(BrokerOptions(**named)) is None


# What is told


@pytest.mark.parametrize("role", LISTENERS)
def test_a_role_that_anybody_reaches_says_so(role: str) -> None:
    def lines(address: str, **others: object) -> int:
        member = made(role, AccessOptions())
        member.node._options = _at(member.node._options, address, **others)  # type: ignore[attr-defined]
        effects = member.node.receive(Started(1, dict(member.node.listeners)))
        return len(
            [each for each in effects if isinstance(each, Note) and "neither TLS nor acl" in each.what]
        )

    assert lines("127.0.0.1") == lines("[::1]") == lines("localhost") == 0
    assert lines("0.0.0.0") == lines("10.0.0.1") == lines("broker.example") == 1
    assert lines("0.0.0.0", tls=TlsOptions(tls_server_mode="PERMISSIVE")) == 0
    assert lines("0.0.0.0", access=AccessOptions(acl_enable=True, acl_file=FILE)) == 0


def _at(options: object, address: str, **others: object) -> object:
    return replace(options, bind_address=address, **others)  # type: ignore[type-var]


@pytest.mark.parametrize("signed", [None, ADMINISTRATOR], ids=["open", "with ACL"])
def test_each_change_by_an_administrator_is_one_line(signed: Signer | None) -> None:
    access = AccessOptions() if signed is None else AccessOptions(acl_enable=True, acl_file=FILE)
    stage = Stage(made("controller", access)).start()
    body = b"enableElectUncleanMaster=true\nsecretKey=never-to-be-shown\n"
    change = request(RequestCode.UPDATE_CONTROLLER_CONFIG, body=body)
    effects = stage.ask(change, signed=signed)
    (note,) = notes(effects, "administration")
    assert note.values["who"] == ("" if signed is None else "administrator")
    assert note.values["peer"] == "10.9.8.7:40000"
    assert note.values["request"] == "UPDATE_CONTROLLER_CONFIG"
    assert note.values["result"] == "NO_PERMISSION", "secretKey may not be changed over the wire"
    assert "enableElectUncleanMaster" in str(note.values["asked"])
    assert "never-to-be-shown" not in str(effects[:-1])
    effects = stage.ask(request(RequestCode.UPDATE_CONTROLLER_CONFIG, body=body[:30]), signed=signed)
    assert notes(effects, "administration")[0].values["result"] == "SUCCESS"
    # What only looks is not told of.
    assert not notes(stage.ask(request(RequestCode.GET_CONTROLLER_CONFIG), signed=signed), "administration")


def test_of_a_change_that_was_made_no_line_is_left_out_and_no_field_hides_another() -> None:
    stage, emoji = Stage(made("controller", AccessOptions())).start(), "\U0001f600" * 500
    stream = io.StringIO()
    log = Log(stream, Level.INFO, lambda: 0)

    def asked(code: int, body: bytes = b"", **fields: Any) -> None:
        for note in notes(stage.ask(request(code, body=body, **fields)), "administration"):
            log.write(note.level, "controller", note.what, note.values, always=note.always)

    for _ in range(60):
        asked(RequestCode.UPDATE_CONTROLLER_CONFIG, b"enableElectUncleanMaster=true\n")
    fields: dict[str, Any] = {"undeclared": emoji, "clusterName": emoji, "brokerName": "broker-a"}
    stream.seek(0)
    assert [json.loads(line)["result"] for line in stream] == ["SUCCESS"] * 60
    (note,) = notes(stage.ask(request(RequestCode.CLEAN_BROKER_DATA, **fields)), "administration")
    stream.truncate(0)
    stream.seek(0)
    log.write(note.level, "controller", note.what, note.values)
    line = json.loads(stream.getvalue())
    assert "brokerName=broker-a" in line["asked"]
    assert "undeclared" not in str(line["asked"])
    # What was refused may be left out.
    change = request(RequestCode.UPDATE_CONTROLLER_CONFIG, body=b"secretKey=x\n")
    assert not notes(stage.ask(change), "administration")[0].always


def test_a_broker_that_asks_to_be_elected_is_none() -> None:
    stage = Stage(made("controller", AccessOptions())).start()
    fields: dict[str, Any] = {
        "clusterName": "c",
        "brokerName": "a",
        "brokerId": "1",
        "designateElect": "false",
    }
    assert not notes(stage.ask(request(RequestCode.CONTROLLER_ELECT_MASTER, **fields)), "administration")
    fields["designateElect"] = "true"
    assert notes(stage.ask(request(RequestCode.CONTROLLER_ELECT_MASTER, **fields)), "administration")


def test_nothing_of_security_may_be_changed_over_the_wire() -> None:
    from replispec.wire.rocketmq.parameters import CONTROLLER

    fixed = [each.name for each in CONTROLLER.parameters if each.group in ("tls", "access")]
    fixed += ["bindAddress", "listenPort", "storePathRootDir", "controllerStorePath", "configBlackList"]
    stage = Stage(made("controller", AccessOptions())).start()
    for name in fixed:
        answer = stage.answer(request(RequestCode.UPDATE_CONTROLLER_CONFIG, body=f"{name}=1".encode()))
        assert answer.header.code == ResponseCode.NO_PERMISSION, name


# What the roles ask of others


def test_a_broker_signs_what_it_asks() -> None:
    access = AccessOptions(access_key="a-broker", secret_key_file="secret")
    storage = SimulatedStorage(Disk(Rng(1)), {"secret": f"{SECRET}\nmore\n".encode()})
    options = LearnerOptions(broker_name="a", access=access)
    security = security_of(options, storage)
    assert security.sign is not None
    fields = security.sign({"a": "1"}, b"body")
    assert fields == BROKER({"a": "1"}, b"body")
    assert SECRET not in repr(security)


def test_a_changed_secret_signs_what_is_asked_from_then_on_and_an_empty_file_does_not() -> None:
    access = replace(ACCESS, access_key="a-broker", secret_key_file="secret")
    storage = SimulatedStorage(Disk(Rng(1)), {FILE: USERS.encode(), "secret": f"{SECRET}\n".encode()})
    named: dict[str, Any] = {"broker_name": "a", "controller_addr": ("127.0.0.1:1",)}
    options = LearnerOptions(**named, access=access)
    security = security_of(options, storage)
    assert security.watched == (FILE, "secret")
    outbox = Outbox()
    guard, sign = RequestGuard(outbox, security), security.sign
    assert sign is not None

    def told(data: bytes | None) -> list[str]:
        guard.file_read(FileRead("secret", data, 1))
        lines = [each for each in outbox.take() if isinstance(each, Note)]
        assert "another-secret" not in str(lines)
        return [each.what for each in lines]

    before = sign({}, b"")
    assert told(f"{SECRET}\n".encode()) == []
    for unusable in (None, b"", b"\nanother-secret"):
        assert told(unusable) == ["changed secret not taken"]
        assert sign({}, b"") == before
    assert told(b"another-secret\n") == ["changed secret taken"]
    assert sign({}, b"") == Signer("a-broker", "another-secret")({}, b"")
    # What the file of users holds is another matter, and it was not touched.
    guard.file_read(FileRead(FILE, USERS.encode(), 1))
    assert sign({}, b"") != before


@pytest.mark.parametrize("role", LISTENERS)
def test_every_role_reads_its_secret_again(role: str) -> None:
    access = replace(ACCESS, access_key="a-broker", secret_key=SECRET)
    assert made(role, access).watched == (FILE,)
    member = made(role, replace(access, secret_key="", secret_key_file="secret"), secret=SECRET)
    assert member.watched == (FILE, "secret")
    effects = member.node.receive(FileRead("secret", b"another-secret", 1))
    assert len(notes(list(effects), "changed secret taken")) == 1


def test_every_role_is_what_another_one_serves() -> None:
    """A controller with signatures serves a broker's requests as the broker really sends them."""
    access = AccessOptions(acl_enable=True, acl_file=FILE, access_key="a-broker", secret_key=SECRET)
    broker, controller = Stage(made("broker", access)), Stage(made("controller", access)).start()
    effects = broker.give(Started(broker.now_ms, dict(broker.member.node.listeners)))
    (dial,) = (each for each in effects if isinstance(each, Dial) and each.address.endswith(":1"))
    sent = broker.give(Connected(dial.connection, "127.0.0.1:5", broker.now_ms, dial.address))
    (first,) = (each for each in sent if isinstance(each, Send) and each.connection == dial.connection)
    answered = controller.give(Received(controller.connection, bytes(first.data), controller.now_ms))
    assert answers(answered)[0].header.code == ResponseCode.SUCCESS
