"""The members of a group: neutral, as `replispec.cli.<family>.members` tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class MembersRefused(Exception):
    """What was asked for is not done; says why. `again`: it may be later."""

    def __init__(self, why: str, *, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


@dataclass(frozen=True, slots=True)
class ShownMember:
    """One member: where it is reached, whether it `votes` or still learns the log, and how many entries of it
    it lacks, if that is known."""

    id: str
    address: str
    votes: bool
    lag: int | None


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group by the word of a member: its name and founders, who leads, who it is, and who was removed.

    `asked`: the member that says so, which leads if that one is reached.
    """

    name: str
    asked: str
    leader: str | None
    members: Sequence[ShownMember]
    gone: Sequence[str]

    def find(self, member: str) -> ShownMember | None:
        """The member with this id."""
        return next((each for each in self.members if each.id == member), None)

    @property
    def voters(self) -> str:
        """Who votes, in words."""
        return ", ".join(each.id for each in self.members if each.votes)
