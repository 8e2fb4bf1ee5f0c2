"""Users and rights from a file, in RocketMQ's form: no misspelt word is taken for another right."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.access import UsersError, read_users
from replispec.runtime.rocketmq.access.users import FILE_BYTES_MAX, Hosts, Permission

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
        ("users: []", "'users' is not known"),
        (_ONE % "adminn: true", "'adminn' is not known"),
        (_ONE % "admin: 'yes'", "admin is true or false"),
        (_ONE % "role: admin", "role is broker"),
        (_ONE % "topicPerms: [a]", "NAME=PERMISSION"),
        (_ONE % "topicPerms: [a=PUP]", "'PUP' is no permission"),
        (_ONE % "topicPerms: [a=PUB, a=SUB]", "stands twice"),
        (_ONE % "topicPerms: a=PUB", "no list of texts"),
        (_ONE % "defaultTopicPerm: ALL", "'ALL' is no permission"),
        (_ONE % "whiteRemoteAddress: nobody", "names no hosts"),
        ("accounts: [{accessKey: short, secretKey: longer-than}]", "accessKey needs 7"),
        ("accounts: [{accessKey: somebody, secretKey: short}]", "secretKey needs 7"),
        ("accounts: [{accessKey: somebody}]", "secretKey needs 7"),
        (f"accounts: [{_SAME}, {_SAME}]", "twice"),
        (" " * (FILE_BYTES_MAX + 1), "characters"),
        ("[" * 5_000, "no YAML"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_says_where_and_shows_no_secret(text: str, told: str) -> None:
    with pytest.raises(UsersError) as failed:
        read_users(text)
    assert told in str(failed.value)
    assert SECRET not in str(failed.value)


def test_a_user_shows_no_secret() -> None:
    assert SECRET not in repr(read_users(FILE))
