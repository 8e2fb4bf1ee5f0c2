"""The users of a cluster and their rights, from the text of a file.

The form is that of RocketMQ's plain_acl.yml, with one key of ours: `role: broker`. What is not understood is
an error: a right that was misspelt must not be another one.
Source: PlainPermissionManager, Permission, RemoteAddressStrategyFactory (apache/rocketmq rocketmq-all-5.1.4).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from replispec.runtime.documents.yaml_seam import NotYamlError, read
from replispec.wire.rocketmq.constants import (
    ACCESS_WORD_MIN,
    ACL_FILE_CHARACTERS_MAX,
    ACL_USERS_MAX,
    ACL_VERSION_KEY,
    RETRY_TOPIC_PREFIX,
)

_ROLE_BROKER: Final = "broker"
_ACCOUNT: Final = frozenset(
    (
        *("accessKey", "secretKey", "whiteRemoteAddress", "admin", "role"),
        *("defaultTopicPerm", "defaultGroupPerm", "topicPerms", "groupPerms"),
    )
)
_FILE: Final = frozenset(("accounts", "globalWhiteRemoteAddresses", ACL_VERSION_KEY))


class UsersError(Exception):
    """A file of users that cannot be used: says where, and shows nothing that stands there.

    A secret may stand anywhere: `secretKey:abc`, without a blank, is a key in YAML, or the end of the value
    before.
    """


class Permission(Enum):
    """What may be done with a topic or a group."""

    DENY = (False, False)
    PUB = (True, False)
    SUB = (False, True)
    BOTH = (True, True)

    @property
    def may_write(self) -> bool:
        """Whether messages may be sent."""
        return self.value[0]

    @property
    def may_read(self) -> bool:
        """Whether messages may be read."""
        return self.value[1]


_PERMISSIONS: Final = {
    "DENY": Permission.DENY,
    "PUB": Permission.PUB,
    "SUB": Permission.SUB,
    "PUB|SUB": Permission.BOTH,
    "SUB|PUB": Permission.BOTH,
}


class Hosts:
    """Patterns of hosts: one, several with , between them; of IPv4, a part may be * or a range 1-20."""

    def __init__(self, text: str) -> None:
        """Raises UsersError."""
        self._patterns = tuple(
            tuple(map(str.strip, each.split("."))) for each in text.split(",") if each.strip()
        )
        for parts in self._patterns:
            if ":" in parts[0] or len(parts) != 4:
                self._check_exact(".".join(parts))
            elif not all(part == "*" or _range(part) for part in parts):
                raise UsersError(f"{'.'.join(parts)!r} names no hosts")

    @staticmethod
    def _check_exact(text: str) -> None:
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise UsersError(f"{text!r} names no hosts") from None

    def holds(self, host: str) -> bool:
        """Whether a host is among them."""
        own = tuple(host.strip("[]").split("."))
        return any(_matches(pattern, own) for pattern in self._patterns)


@dataclass(frozen=True, slots=True)
class User:
    """One user. `secret` is shown nowhere."""

    access_key: str
    secret: str = field(repr=False)
    is_admin: bool = False
    is_broker: bool = False
    trusted: Hosts | None = None
    default_topic: Permission = Permission.DENY
    default_group: Permission = Permission.DENY
    topics: Mapping[str, Permission] = field(default_factory=dict)
    groups: Mapping[str, Permission] = field(default_factory=dict)

    def of_topic(self, topic: str) -> Permission:
        """What it may do with a topic; a topic for repeated messages is as its group."""
        if topic.startswith(RETRY_TOPIC_PREFIX):
            is_in = self.of_group(topic.removeprefix(RETRY_TOPIC_PREFIX)).may_read
            return Permission.BOTH if is_in else Permission.DENY
        return self.topics.get(topic, self.default_topic)

    def of_group(self, group: str) -> Permission:
        """What it may do as a member of a group."""
        return self.groups.get(group, self.default_group)


@dataclass(frozen=True, slots=True)
class Users:
    """All of them by access key, and hosts of which no request is looked at."""

    by_key: Mapping[str, User]
    trusted: Sequence[Hosts] = ()

    def trusts(self, host: str, user: User | None) -> bool:
        """Whether requests of this host, in the name of this user, are served as they are."""
        if user is not None and user.trusted is not None and user.trusted.holds(host):
            return True
        return any(each.holds(host) for each in self.trusted)


def users_in(data: bytes) -> Users:
    """The users that the bytes of a file hold. Raises UsersError."""
    try:
        return read_users(data.decode())
    except UnicodeDecodeError:
        raise UsersError("not UTF-8") from None


def read_users(text: str) -> Users:
    """The users that a file holds. Raises UsersError."""
    if len(text) > ACL_FILE_CHARACTERS_MAX:
        raise UsersError(f"more than {ACL_FILE_CHARACTERS_MAX} characters")
    try:
        found = read(text)
    except NotYamlError as error:
        raise UsersError(str(error)) from None
    whole = _mapping(found, "the file", _FILE)
    accounts = whole.get("accounts")
    if not isinstance(accounts, list) or not accounts:
        raise UsersError("there are no accounts")
    if len(accounts) > ACL_USERS_MAX:
        raise UsersError(f"more than {ACL_USERS_MAX} accounts")
    users: dict[str, User] = {}
    for number, each in enumerate(accounts, start=1):
        user = _user(each, f"account {number}")
        if user.access_key in users:
            raise UsersError(f"account {number}: its accessKey stands twice")
        users[user.access_key] = user
    white = "globalWhiteRemoteAddresses"
    return Users(users, tuple(_hosts(each, white) for each in _texts(whole.get(white) or [], white)))


def _user(said: Any, where: str) -> User:
    account = _mapping(said, where, _ACCOUNT)
    role = account.get("role")
    if role not in (None, _ROLE_BROKER):
        raise UsersError(f"{where}: role is {_ROLE_BROKER}, or left out")
    admin = account.get("admin", False)
    if not isinstance(admin, bool):
        raise UsersError(f"{where}: admin is true or false")
    white = account.get("whiteRemoteAddress")
    return User(
        access_key=_word(account, "accessKey", where),
        secret=_word(account, "secretKey", where),
        is_admin=admin,
        is_broker=role is not None,
        trusted=_hosts(white, f"{where}: whiteRemoteAddress") if white else None,
        default_topic=_permission(account.get("defaultTopicPerm", "DENY"), f"{where}: defaultTopicPerm"),
        default_group=_permission(account.get("defaultGroupPerm", "DENY"), f"{where}: defaultGroupPerm"),
        topics=_permissions(account.get("topicPerms"), f"{where}: topicPerms"),
        groups=_permissions(account.get("groupPerms"), f"{where}: groupPerms"),
    )


def _mapping(said: Any, where: str, known: frozenset[str]) -> Mapping[str, Any]:
    if not isinstance(said, dict):
        raise UsersError(f"{where} is no mapping")
    for key in said:
        if key not in known:
            begins = key.partition(":")[0]
            raise UsersError(
                f"{where}: no blank after {begins}:"
                if begins in known
                else f"{where}: a key is not known; known are {', '.join(sorted(known))}"
            )
    return said


def _word(account: Mapping[str, Any], key: str, where: str) -> str:
    word = account.get(key)
    if not isinstance(word, str) or len(word) < ACCESS_WORD_MIN:
        raise UsersError(f"{where}: {key} needs {ACCESS_WORD_MIN} characters or more")
    return word


def _hosts(said: Any, where: str) -> Hosts:
    try:
        return Hosts(said if isinstance(said, str) else "no text")
    except UsersError:
        raise UsersError(f"{where} names no hosts") from None


def _permission(said: Any, where: str) -> Permission:
    found = _PERMISSIONS.get(said.replace(" ", "")) if isinstance(said, str) else None
    if found is None:
        raise UsersError(f"{where} is no permission: DENY, PUB, SUB or PUB|SUB")
    return found


def _permissions(said: Any, where: str) -> dict[str, Permission]:
    found: dict[str, Permission] = {}
    for number, each in enumerate(_texts(said or [], where), start=1):
        name, separator, permission = (part.strip() for part in each.partition("="))
        if not separator or not name or name in found:
            raise UsersError(f"{where}, entry {number} is no NAME=PERMISSION, or its name stands twice")
        found[name] = _permission(permission, f"{where}, entry {number}")
    return found


def _texts(said: Any, where: str) -> Sequence[str]:
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise UsersError(f"{where} is no list of texts")
    return said


def _range(part: str) -> range | None:
    """The numbers of 3 or 1-20; None for what is neither."""
    first, separator, last = part.partition("-")
    numbers = (first, last) if separator else (first, first)
    if not all(
        each.isascii() and each.isdecimal() and len(each) <= 3 and int(each) <= 255 for each in numbers
    ):
        return None
    return range(int(numbers[0]), int(numbers[1]) + 1)


def _matches(pattern: Sequence[str], host: Sequence[str]) -> bool:
    return len(pattern) == len(host) and all(map(_part_matches, pattern, host))


def _part_matches(pattern: str, part: str) -> bool:
    if pattern in ("*", part):
        return True
    numbers = _range(pattern)
    return numbers is not None and part.isascii() and part.isdecimal() and int(part) in numbers
