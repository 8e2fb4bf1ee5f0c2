"""What a consumer group wants that pulls: all messages, those of some tags, or nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replispec.replay.events.queue_observations import Pulled, Subscribed
from replispec.replay.events.rocketmq.queue_seen import SeenTopic
from replispec.replay.events.rocketmq.subscriptions import Wanted


class Wants(StrEnum):
    """As the streams of the specification say it."""

    ALL = "all"
    SOME = "some"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a group wants. `codes`: hashes of its tags, None where these are not known; `why`: why they, or
    what it wants, are not."""

    wants: Wants
    codes: frozenset[int] | None = None
    why: str = ""

    def has(self, tag_code: int | None) -> bool | None:
        """Whether it wants a message of this tag; None where that is not known."""
        if self.wants == Wants.ALL:
            return True
        if self.codes is None or tag_code is None:
            return None
        return tag_code in self.codes


_ALL = Wish(Wants.ALL)
_BY_OTHERS = "it asks by another expression than tags"
_UNTAGGED = "the tag of the message was not seen"


def why_not(wish: Wish, tag_code: int | None) -> str:
    """Why it is not known whether a group wants a message; empty where it is."""
    if wish.has(tag_code) is not None:
        return ""
    return wish.why or _UNTAGGED


def wish_of(seen: SeenTopic, row: Pulled) -> Wish:
    """What a pull asks for, by itself or by the heartbeats of its group."""
    if row.filtered is not None:
        return _of(Wanted.TAGS if row.tag_codes is not None else Wanted.OTHER, row) if row.filtered else _ALL
    said = [each for each in seen.wishes if each.consumer_group == row.consumer_group]
    if not said:
        return Wish(Wants.UNKNOWN, why="no heartbeat of it that says what it wants was captured")
    if len({(each.wanted, tuple(each.tag_codes or ())) for each in said}) > 1:
        return Wish(Wants.UNKNOWN, why="its heartbeats say different things of what it wants")
    if row.sub_version not in {each.sub_version for each in said}:
        return Wish(Wants.UNKNOWN, why="no heartbeat that was captured is of the version that its pull names")
    if seen.unseen or seen.silent:
        return Wish(Wants.UNKNOWN, why="not all was captured that its members may have said that they want")
    return _of(Wanted(said[0].wanted or Wanted.OTHER), said[0])


def _of(wanted: Wanted, row: Pulled | Subscribed) -> Wish:
    if wanted == Wanted.ALL:
        return _ALL
    if wanted == Wanted.OTHER:
        return Wish(Wants.SOME, why=_BY_OTHERS)
    return Wish(Wants.SOME, frozenset(row.tag_codes or ()))
