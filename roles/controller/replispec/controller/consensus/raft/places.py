"""Where the members of a group are reached, and what it is called: what the agreement itself does not know.

To the agreement members are numbers; who they are is in records of its log, each of which says all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.event.v1.event_pb2 import GroupPlace, GroupPlaces
from replispec.runtime.primitives.binary import crc32
from replispec.runtime.primitives.immutable import immutable
from replispec.wire.rocketmq.constants import (
    GROUP_FOUNDED_BY,
    GROUP_FOUNDERS_SEPARATOR,
    MEMBER_NUMBER_MAX,
    NOT_IN_MEMBER_IDS,
)


def number_of(member: str) -> int:
    """The number of a member: of its id alone, so that it stays the same whoever else is in the group."""
    return crc32(member.encode(), MEMBER_NUMBER_MAX)


def is_id(member: str) -> bool:
    """Whether a member can be called so: what parts ids elsewhere is none of it."""
    return bool(member) and not set(member) & set(NOT_IN_MEMBER_IDS) and member.isprintable()


@immutable
class ControllerGroup:
    """A group as it is configured: its name, the id of this member, and where each that is listed is reached.

    `joins`: this member has to be told who the group is before it begins.
    """

    name: str
    member: str
    addresses: Mapping[str, str]
    joins: bool = False

    @property
    def founded(self) -> str:
        """What a group is called for good, in messages and on disks, that these found: its name, and they. So
        those that were given different lists take nothing of each other; they would count different
        majorities. Who comes and goes later changes nothing of it."""
        return f"{self.name}{GROUP_FOUNDED_BY}{GROUP_FOUNDERS_SEPARATOR.join(sorted(self.addresses))}"

    @property
    def is_distinct(self) -> bool:
        """Whether no two members have one number."""
        return len(set(map(number_of, self.addresses))) == len(self.addresses)

    def is_of(self, identity: str) -> bool:
        """Whether a group that is called so has this name."""
        return identity.rpartition(GROUP_FOUNDED_BY)[0] == self.name


def founders(identity: str) -> Sequence[str]:
    """Who founded a group that is called so."""
    return identity.rpartition(GROUP_FOUNDED_BY)[2].split(GROUP_FOUNDERS_SEPARATOR)


@immutable
class MemberPlaces:
    """Who a group is to be by the record at `index`: where each member is reached, by its id, and the ids
    that were removed. At 0: no record has said it."""

    members: Mapping[str, str]
    gone: Sequence[str] = ()
    index: int = 0

    @staticmethod
    def of(record: GroupPlaces, index: int) -> MemberPlaces:
        """As a record says it."""
        return MemberPlaces({each.id: each.address for each in record.members}, tuple(record.gone), index)

    def record(self) -> GroupPlaces:
        """The record that says it, after the one at `index`."""
        return GroupPlaces(members=places(self.members), gone=self.gone, replaces=self.index)

    def with_member(self, member: str, address: str) -> MemberPlaces:
        """With one more."""
        return MemberPlaces({**self.members, member: address}, self.gone, self.index)

    def without(self, member: str) -> MemberPlaces:
        """With one less, for good."""
        left = {each: at for each, at in self.members.items() if each != member}
        return MemberPlaces(left, (*self.gone, member), self.index)


def places(members: Mapping[str, str]) -> Sequence[GroupPlace]:
    """Members and their addresses, ascending by id."""
    return [GroupPlace(id=each, address=at) for each, at in sorted(members.items())]
