"""All brokers with their figures, in mqadmin's words and as rows.

Source: apache/rocketmq rocketmq-all-5.4.0, ClusterListSubCommand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from replispec.administrator.rocketmq.brokers import Brokers
from replispec.administrator.rocketmq.plans import NotAsWantedError
from replispec.cli.peers_text import of_peers
from replispec.cli.rocketmq.admin.java_text import in_table, said
from replispec.cli.shown import Display, Row
from replispec.wire.rocketmq.client import RuntimeInfo

_HOUR_MS: Final = 3_600_000
_WHO: Final = "{:<22}  {:<22}  {:<4}  {:<22} {:<16}  {:>16}  {:>30}  {:<22}  "
_HEAD: Final = (_WHO + "{:<11}  {:<12}  {:<8}  {:<10}\n").format(
    "#Cluster Name",
    "#Broker Name",
    "#BID",
    "#Addr",
    "#Version",
    "#InTPS(LOAD)",
    "#OutTPS(LOAD)",
    "#Timer(Progress)",
    "#PCWait(ms)",
    "#Hour",
    "#SPACE",
    "#ACTIVATED",
)
_LINE: Final = _WHO + "{:>11}  {:<12}  {:<8}  {:>10}\n"
_MORE: Final = "{:<16}  {:<32} {:>14} {:>14} {:>14} {:>14}\n"
Figures = Mapping[str, RuntimeInfo | NotAsWantedError]
Table = Mapping[str, str | None]


class _Member(NamedTuple):
    cluster: str
    name: str
    route_id: int
    address: str
    table: Table
    why: str


def _members(known: Brokers, figures: Figures) -> Iterator[_Member]:
    for cluster, sets in in_table(known.clusters).items():
        for name, members in sorted(sets.items()):
            for route_id, address in sorted(members.items()):
                found = figures.get(address)
                table = (found.table or {}) if isinstance(found, RuntimeInfo) else {}
                why = str(found) if isinstance(found, NotAsWantedError) else ""
                yield _Member(cluster, name, route_id, address, table, why)


@of_peers
def listed(known: Brokers, figures: Figures, now_ms: int) -> Display:
    """Of clusterList: a row for each broker; who does not answer has a line among the faults."""
    members = list(_members(known, figures))
    text = _HEAD + "".join(_line(each, now_ms) for each in members)
    return Display(text, [_row(each) for each in members], faults=[each.why for each in members if each.why])


def _line(member: _Member, now_ms: int) -> str:
    table = member.table
    oldest = table.get("earliestMessageTimeStamp")
    hours = (now_ms - int(oldest)) / _HOUR_MS if oldest else 0.0
    return _LINE.format(
        member.cluster,
        member.name,
        member.route_id,
        member.address,
        _told(table, "brokerVersionDesc"),
        f"{_rate(table, 'putTps'):9.2f}({_queue(table, 'send')})",
        f"{_rate(table, 'getTransferredTps'):9.2f}({_queue(table, 'pull')}|{_queue(table, 'ack', 'N')})",
        _timer(table),
        _told(table, "pageCacheLockTimeMills"),
        f"{hours:2.2f}",
        f"{float(table.get('commitLogDiskRatio') or 0):.4f}",
        said(table.get("brokerActive") == "true"),
    )


def _told(table: Table, name: str, otherwise: str | None = None) -> str:
    """A figure; of a broker that tells none, nothing."""
    return said(table.get(name, otherwise)) if table else ""


def _queue(table: Table, kind: str, otherwise: str | None = None) -> str:
    size = _told(table, f"{kind}ThreadPoolQueueSize", otherwise)
    return f"{size},{_told(table, f'{kind}ThreadPoolQueueHeadWaitTimeMills', otherwise)}ms"


def _rate(table: Table, name: str) -> float:
    """The first of several averages."""
    return float(((table.get(name) or "0").split() or ["0"])[0])


def _timer(table: Table) -> str:
    behind, offset, waiting = (
        int(table.get(name) or 0) for name in ("timerReadBehind", "timerOffsetBehind", "timerCongestNum")
    )
    taken, given = (float(table.get(name) or 0) for name in ("timerEnqueueTps", "timerDequeueTps"))
    return f"{behind}-{offset}({waiting / 10_000:.1f}w, {taken:.1f}, {given:.1f})"


def _row(member: _Member) -> Row:
    table = member.table
    return {
        "cluster_name": member.cluster,
        "broker_name": member.name,
        "broker_id": member.route_id,
        "broker_address": member.address,
        "version": table.get("brokerVersionDesc"),
        "in_tps": _rate(table, "putTps"),
        "out_tps": _rate(table, "getTransferredTps"),
        "earliest_message_time_stamp": table.get("earliestMessageTimeStamp"),
        "disk_ratio": table.get("commitLogDiskRatio"),
        "active": table.get("brokerActive") == "true",
    }


@of_peers
def more(known: Brokers, figures: Figures, _now_ms: int) -> Display:
    """Of clusterList -m: how many messages came and went."""
    members = list(_members(known, figures))
    head = (
        "#Cluster Name",
        "#Broker Name",
        "#InTotalYest",
        "#OutTotalYest",
        "#InTotalToday",
        "#OutTotalToday",
    )
    rows: list[Row] = []
    text = [_MORE.format(*head)]
    for each in members:
        counts = [_came(each.table, kind, day) for day in (0, 1) for kind in ("Put", "Get")]
        text.append(_MORE.format(each.cluster, each.name, *counts))
        names = ("in_yesterday", "out_yesterday", "in_today", "out_today")
        who = {"cluster_name": each.cluster, "broker_name": each.name, "broker_id": each.route_id}
        rows.append(who | dict(zip(names, counts, strict=True)))
    return Display("".join(text), rows, faults=[each.why for each in members if each.why])


def _came(table: Table, kind: str, day: int) -> int:
    """Messages of yesterday (0) or today (1)."""
    marks = [f"msg{kind}Total{when}" for when in ("YesterdayMorning", "TodayMorning", "TodayNow")]
    try:
        first, second = (int(table[mark] or 0) for mark in marks[day : day + 2])
    except (KeyError, ValueError):
        return 0
    return second - first
