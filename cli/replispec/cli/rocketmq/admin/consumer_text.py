"""Topics and groups of consumers, in mqadmin's words and as rows.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicStatusSubCommand, ConsumerProgressSubCommand,
ResetOffsetByTimeCommand, ResetOffsetByTimeOldCommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from replispec.administrator.rocketmq.consumers import (
    GroupOverview,
    Progress,
    Reset,
    Rollback,
    TopicQueue,
    TopicStats,
)
from replispec.cli.peers_text import of_peers
from replispec.cli.rocketmq.admin.java_text import in_order_of_hashes, moment, said
from replispec.cli.shown import Display, Row
from replispec.wire.rocketmq.codes import Release

_TOPIC: Final = "{:<32}  {:<4}  {:<20}  {:<20}    {}\n"
_GROUP: Final = "{:<64}  {:<6}  {:<24} {:<5}  {:<14}  {:<7}  {}\n"
_QUEUE: Final = "{:<64}  {:<32}  {:<4}  {:<20}  {:<20}  {:<20} {:<20} {}\n"
_QUEUE_HEAD: Final = "{:<64}  {:<32}  {:<4}  {:<20}  {:<20}  {:<20} {:<20}{}\n"
_RESET: Final = "{:<40}  {:<40}  {:<40}\n"
_MOVED: Final = "{:<20}  {:<20}  {:<20}  {:<20}  {:<20}  {:<20}\n"
_WIDE, _NARROW = 64, 32
_PULLS, _IS_PUSHED = "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"


@of_peers
def topic_stats(found: TopicStats) -> Display:
    """Of topicStatus: a row for each queue."""
    rows: list[Row] = []
    text = [_TOPIC.format("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")]
    for queue, told in found.queues.items():
        at_ms = told.last_update_timestamp or 0
        start, end = said(told.min_offset), said(told.max_offset)
        when = moment(at_ms) if at_ms > 0 else ""
        text.append(_TOPIC.format(queue.broker[:_NARROW], queue.number, start, end, when))
        rows.append(
            {
                "broker_name": queue.broker,
                "queue_id": queue.number,
                "min_offset": told.min_offset,
                "max_offset": told.max_offset,
                "last_update_ms": at_ms or None,
            }
        )
    text.append(f"\nTopic Put TPS: {found.put_tps}\n")
    return Display("".join(text), rows)


@of_peers
def progress(found: Progress) -> Display:
    """Of consumerProgress -g: a row for each queue."""
    rows: list[Row] = []
    head = ("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Diff", "#Inflight")
    text = [_QUEUE_HEAD.format(*head, "#LastTime")]
    behind = under_way = 0
    for queue, told in found.queues.items():
        end, at = told.broker_offset or 0, told.consumer_offset or 0
        diff, inflight = end - at, (told.pull_offset or 0) - at
        behind, under_way = behind + diff, under_way + inflight
        names = queue.topic[:_WIDE], queue.broker[:_NARROW], queue.number
        text.append(_QUEUE.format(*names, end, at, diff, inflight, _second(told.last_timestamp)))
        rows.append(
            {
                "topic": queue.topic,
                "broker_name": queue.broker,
                "queue_id": queue.number,
                "broker_offset": end,
                "consumer_offset": at,
                "diff": diff,
                "inflight": inflight,
                "last_read_ms": told.last_timestamp or None,
            }
        )
    text.append(f"\nConsume TPS: {found.tps:.2f}\n")
    text.append(f"Consume Diff Total: {behind}\nConsume Inflight Total: {under_way}\n")
    return Display("".join(text), rows)


def _second(at_ms: int | None) -> str:
    return f"{datetime.fromtimestamp(at_ms // 1_000):%Y-%m-%d %H:%M:%S}" if at_ms else "N/A"  # noqa: DTZ006


@of_peers
def groups(found: Sequence[GroupOverview]) -> Display:
    """Of consumerProgress: a row for each group."""
    rows: list[Row] = []
    text = [_GROUP.format("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")]
    for each in found:
        clients = (each.clients.connection_set if each.clients is not None else None) or []
        kind = each.clients.consume_type if each.clients is not None and clients else None
        model = (each.clients.message_model or "") if each.clients and kind == _IS_PUSHED else ""
        pulls = "PULL" if kind == _PULLS else "PUSH" if kind else ""
        versions = [one.version for one in clients if one.version]
        version = _release(min(versions)) if versions else "" if clients else "OFFLINE"
        tps = int(each.progress.tps)
        name = each.group[:_WIDE]
        text.append(_GROUP.format(name, len(clients), version, pulls, model, tps, each.behind))
        rows.append(
            {
                "group": each.group,
                "clients": len(clients),
                "version": version or None,
                "type": pulls or None,
                "model": model or None,
                "tps": tps,
                "diff": each.behind,
            }
        )
    return Display("".join(text), rows)


def _release(version: int) -> str:
    try:
        return Release(version).name
    except ValueError:
        return str(version)


@of_peers
def reset(wanted: Reset, written: str, found: Mapping[TopicQueue, int] | Sequence[Rollback]) -> Display:
    """Of resetOffsetByTime: a row for each queue."""
    return _told(wanted, written, found) if isinstance(found, Mapping) else _moved(wanted, written, found)


def _told(wanted: Reset, written: str, found: Mapping[TopicQueue, int]) -> Display:
    said_first = (
        f"start reset consumer offset by specified, group[{wanted.group}], topic[{wanted.topic}], "
        f"force[{said(wanted.force)}], timestamp(string)[{written}], timestamp(long)[{wanted.at_ms}]\n"
    )
    text = [said_first, _RESET.format("#brokerName", "#queueId", "#offset")]
    rows: list[Row] = []
    by_names = {(each.topic, each.broker, each.number): offset for each, offset in found.items()}
    for (_, broker, number), offset in in_order_of_hashes(by_names):
        text.append(_RESET.format(broker[:_NARROW], number, offset))
        rows.append({"broker_name": broker, "queue_id": number, "offset": offset})
    return Display("".join(text), rows)


def _moved(wanted: Reset, written: str, found: Sequence[Rollback]) -> Display:
    head = ("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset", "#resetOffset")
    said_first = (
        f"reset consumer offset by specified consumerGroup[{wanted.group}], topic[{wanted.topic}], "
        f"force[{said(wanted.force)}], timestamp(string)[{written}], timestamp(long)[{wanted.at_ms}]\n"
    )
    text = [said_first, _MOVED.format(*head)]
    rows: list[Row] = []
    for each in found:
        name, number = each.queue.broker[:_NARROW], each.queue.number
        text.append(_MOVED.format(name, number, each.ends, each.before, each.then, each.now))
        rows.append(
            {
                "broker_name": each.queue.broker,
                "queue_id": number,
                "before": each.before,
                "offset": each.now,
            }
        )
    return Display("".join(text), rows)
