"""Users and rights from a file, in RocketMQ's form: no misspelt word is taken for another right."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.runtime.rocketmq.access import UsersError, read_users
from replispec.runtime.rocketmq.access.users import Hosts, Permission
from replispec.wire.rocketmq.constants import ACL_FILE_CHARACTERS_MAX, ACL_USERS_MAX

SECRET = "never-to-be-shown"
FILE = f"""
globalWhiteRemoteAddresses: [10.1.*.*]
dataVersion: [{{counter: 1, timestamp: 1}}]
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress: 192.168.0.1-20, ::1
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms: [topicA=DENY, topicB=PUB|SUB, topicC = SUB]
    groupPerms: [groupA=DENY]
  - {{accessKey: administrator, secretKey: {SECRET}, admin: true}}
  - {{accessKey: a-broker, secretKey: {SECRET}, role: broker}}
"""


def test_users_are_read_as_rocketmq_writes_them() -> None:
    users = read_users(FILE)
    user = users.by_key["RocketMQ"]
    assert (user.secret, user.is_admin, user.is_broker) == ("12345678", False, False)
    assert [user.of_topic(name) for name in ("topicA", "topicB", "topicC", "else")] == [
        Permission.DENY,
        Permission.BOTH,
        Permission.SUB,
        Permission.DENY,
    ]
    assert user.of_group("groupA") is Permission.DENY
    assert user.of_group("else") is Permission.SUB
    assert users.by_key["administrator"].is_admin
    assert users.by_key["a-broker"].is_broker


def test_a_topic_for_repeated_messages_is_as_its_group() -> None:
    user = read_users(FILE).by_key["RocketMQ"]
    assert user.of_topic("%RETRY%groupA") is Permission.DENY
    assert user.of_topic("%RETRY%else") is Permission.BOTH


def test_what_is_not_said_is_denied() -> None:
    user = read_users(FILE).by_key["a-broker"]
    assert user.of_topic("any") is user.of_group("any") is Permission.DENY


@pytest.mark.parametrize(
    ("pattern", "holds", "others"),
    [
        ("10.0.0.1", ["10.0.0.1"], ["10.0.0.11", "10.0.0.2", "::1"]),
        ("10.0.*.*", ["10.0.0.1", "10.0.255.3"], ["10.1.0.1", "10.0.0"]),
        ("10.0.0.1-20", ["10.0.0.1", "10.0.0.20"], ["10.0.0.21", "10.0.0.0"]),
        ("10.0.0.1, 10.0.0.3", ["10.0.0.1", "10.0.0.3"], ["10.0.0.2"]),
        ("::1", ["::1", "[::1]"], ["::2", "127.0.0.1"]),
    ],
)
def test_hosts_are_who_the_pattern_names(pattern: str, holds: list[str], others: list[str]) -> None:
    hosts = Hosts(pattern)
    assert [hosts.holds(each) for each in holds] == [True] * len(holds)
    assert [hosts.holds(each) for each in others] == [False] * len(others)


@pytest.mark.parametrize("pattern", ["here", "10.0.0", "10.0.0.256", "10.0.0.x", "10.0.0.{1,2}", "10.0.0.1-"])
def test_a_pattern_that_names_no_hosts_is_refused(pattern: str) -> None:
    with pytest.raises(UsersError, match="names no hosts"):
        Hosts(pattern)


_ONE = f"accounts: [{{accessKey: somebody, secretKey: {SECRET}, %s}}]"


_SAME = f"{{accessKey: somebody, secretKey: {SECRET}}}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is no mapping"),
        ("accounts: []", "no accounts"),
        ("accounts: [", "no YAML, line 1"),
        (f"accounts:\n- secretKey: {SECRET}\n  accessKey: [", "no YAML"),
        ("accounts: [1]", "account 1 is no mapping"),
        ("users: []", "the file: a key is not known; known are accounts, "),
        (_ONE % "adminn: true", "account 1: a key is not known; known are accessKey, "),
        (_ONE % "admin: 'yes'", "admin is true or false"),
        (_ONE % "role: admin", "role is broker"),
        (_ONE % "topicPerms: [a]", "NAME=PERMISSION"),
        (_ONE % "topicPerms: [b=PUB, a=PUP]", "account 1: topicPerms, entry 2 is no permission"),
        (_ONE % "topicPerms: [a=PUB, a=SUB]", "stands twice"),
        (_ONE % "topicPerms: a=PUB", "no list of texts"),
        (_ONE % "defaultTopicPerm: ALL", "account 1: defaultTopicPerm is no permission"),
        (_ONE % "whiteRemoteAddress: nobody", "account 1: whiteRemoteAddress names no hosts"),
        (_ONE % "whiteRemoteAddress: [10.0.0.1]", "account 1: whiteRemoteAddress names no hosts"),
        (_ONE % f"whiteRemoteAddress: {'1' * 5_000}.0.0.0", "account 1: whiteRemoteAddress names no hosts"),
        ("accounts: [{accessKey: short, secretKey: longer-than}]", "accessKey needs 7"),
        ("accounts: [{accessKey: somebody, secretKey: short}]", "secretKey needs 7"),
        ("accounts: [{accessKey: somebody}]", "secretKey needs 7"),
        (f"accounts: [{_SAME}, {_SAME}]", "twice"),
        (" " * (ACL_FILE_CHARACTERS_MAX + 1), "characters"),
        ("[" * 5_000, "nested too deep"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_says_where_and_shows_no_secret(text: str, told: str) -> None:
    with pytest.raises(UsersError) as failed:
        read_users(text)
    assert told in str(failed.value)
    assert SECRET not in str(failed.value)


def test_a_user_shows_no_secret() -> None:
    assert SECRET not in repr(read_users(FILE))


def _users(count: int) -> str:
    return "accounts:\n" + "".join(
        f"- {{accessKey: user-{number}, secretKey: {SECRET}}}\n" for number in range(1_000, 1_000 + count)
    )


def test_users_are_bounded_in_number() -> None:
    assert len(read_users(_users(ACL_USERS_MAX)).by_key) == ACL_USERS_MAX
    with pytest.raises(UsersError, match=f"^more than {ACL_USERS_MAX} accounts$"):
        read_users(_users(ACL_USERS_MAX + 1))


@pytest.mark.parametrize("word", ["0x12345678", "01234567", "1_000_000", "12:34:56", "2026-13-45"])
def test_a_secret_is_what_was_written(word: str) -> None:
    text = f"accounts: [{{accessKey: somebody, secretKey: {word}}}]"
    assert read_users(text).by_key["somebody"].secret == word


_BLOCK = f"accounts:\n- accessKey: somebody\n  secretKey: {SECRET}\n"


@pytest.mark.parametrize(
    "text",
    [
        f"accounts: [{{accessKey: somebody, secretKey:{SECRET}}}]",
        f"accounts: [{{accessKey: somebody, {SECRET}: secretKey}}]",
        f"accounts: [{{accessKey: somebody, secretkey:{SECRET}: x}}]",
        f"accounts: [{{accessKey: somebody, ? [{SECRET}] : x}}]",
        f"accounts: []\nsecretKey:{SECRET}:\n",
        f"accounts:\n- accessKey: somebody\n  secretKey: '{SECRET}\n",
        *(
            f"{_BLOCK}  {key}:{value}\n   secretKey:{SECRET}\n"
            for key in ("admin", "role", "defaultTopicPerm", "defaultGroupPerm", "whiteRemoteAddress")
            for value in (" DENY", f" {SECRET}", f" [{SECRET}]", f" {{a: {SECRET}}}")
        ),
        *(_ONE % f"{key}: [a=PUB {SECRET}]" for key in ("topicPerms", "groupPerms")),
        *(_ONE % f"{key}: [{SECRET}]" for key in ("topicPerms", "groupPerms")),
        f"globalWhiteRemoteAddresses: [{SECRET}]\n{_ONE % 'admin: true'}",
        f"accounts: [{{accessKey: &{SECRET} somebody, secretKey: *{SECRET}}}]",
        f"accounts: [{{accessKey: somebody, secretKey: !{SECRET} x}}]",
    ],
)
def test_a_secret_in_a_wrong_place_is_not_shown(text: str) -> None:
    with pytest.raises(UsersError) as failed:
        read_users(text)
    assert SECRET not in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_key_without_a_blank_is_told_by_its_name() -> None:
    with pytest.raises(UsersError, match=r"^account 1: no blank after secretKey:$"):
        read_users(f"accounts: [{{accessKey: somebody, secretKey:{SECRET}}}]")


def test_the_file_that_the_page_shows_is_taken_as_it_stands() -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text("utf-8")
    examples = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    assert len(examples) == 1
    users = read_users(examples[0])
    rights = {key: (user.is_broker, user.is_admin) for key, user in users.by_key.items()}
    assert rights == {
        "cluster-process": (True, False),
        "administrator": (False, True),
        "orders-client": (False, False),
    }
    client = users.by_key["orders-client"]
    assert [client.of_topic(name) for name in ("orders", "prices", "else")] == [
        Permission.BOTH,
        Permission.SUB,
        Permission.DENY,
    ]
    assert client.of_group("order-readers") is Permission.SUB
