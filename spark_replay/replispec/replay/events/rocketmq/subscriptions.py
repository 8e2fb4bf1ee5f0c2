"""What consumer groups want of topics: which tags, as pulls say it, or heartbeats of members.

Source: apache/rocketmq rocketmq-all-5.4.0, FilterAPI, SubscriptionData, PullMessageProcessor: a broker hands
out the messages whose tag has one of the hashes; a pull that names no expression means what heartbeats say.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from replispec.replay.events.queue_observations import Subscribed
from replispec.replay.events.rocketmq.command import Command
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.client import HeartbeatData, SubscriptionData
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import ALL_TAGS, TAG_FILTER, TAG_SEPARATOR


class Wanted(StrEnum):
    """What a group wants: everything, what has one of some tags, or what fits another expression."""

    ALL = "all"
    TAGS = "tags"
    OTHER = "other"


_ALL: Final = (ALL_TAGS, "")


def wanted_of(expression: str, kind: str | None) -> Wanted:
    """What an expression of a kind (a tag's, unless it is named) asks for."""
    if kind not in (None, "", TAG_FILTER):
        return Wanted.OTHER
    return Wanted.ALL if expression in _ALL else Wanted.TAGS


def codes_of(expression: str) -> list[int]:
    """The hashes of the tags in an expression, sorted."""
    tags = (each.strip() for each in expression.split(TAG_SEPARATOR))
    return sorted({rules.string_hash(each) for each in tags if each})


def subscribed_of(command: Command) -> Iterator[Subscribed]:
    """What a heartbeat says that the groups of its client want. One that is not read says nothing of any."""
    if command.is_answer or command.code != RequestCode.HEART_BEAT:
        return
    try:
        body = command.body(HeartbeatData)
    except RemoteProtocolError:
        body = None
    if body is None:
        if command.body_size:
            yield Subscribed(*command.place)
        return
    for group in body.consumer_data_set or ():
        for each in group.subscription_data_set or ():
            wanted = _wanted(each)
            yield Subscribed(
                *command.place,
                topic=each.topic,
                consumer_group=group.group_name,
                wanted=wanted.value,
                sub_version=each.sub_version,
                tag_codes=sorted(each.code_set or ()) if wanted == Wanted.TAGS else None,
            )


def _wanted(said: SubscriptionData) -> Wanted:
    if said.class_filter_mode:
        return Wanted.OTHER
    return wanted_of(said.sub_string or "", said.expression_type)


def told_of(row: Subscribed) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """What a row is about, on which side of a connection, and what it says of that."""
    about = (row.kind, row.connection, row.direction, row.topic, row.consumer_group)
    return about, (row.wanted, row.sub_version, tuple(row.tag_codes or ()))
