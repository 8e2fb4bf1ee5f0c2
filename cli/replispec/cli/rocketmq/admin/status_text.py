"""How a cluster is, in words and as rows; and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from replispec.administrator.rocketmq.health import Observation
from replispec.administrator.rocketmq.status import ControllerView, MemberStatus, SetStatus, Status
from replispec.cli.peers_text import of_peers
from replispec.cli.shown import TABLE, Display, Row, written

EXIT_UNWELL: Final = 1


@of_peers
def shown(status: Status) -> Display:
    """Of `replispec status`: a row for each member of each set."""
    rows = [row for each in status.sets for row in _rows(each)]
    faults = [f"{name}: no controller knows this broker set" for name in status.missing]
    faults += [status.without_record] if status.without_record else []
    text = _leaders(status.views) + (_table(rows) or ("" if faults else "no broker set is on record\n"))
    return Display(text, rows, EXIT_UNWELL if faults else 0, faults)


@of_peers
def health(status: Status, findings: Sequence[Observation]) -> Display:
    """Of `replispec admin health`: what each controller says, the sets, what is wrong."""
    rows: list[Row] = [{"about": each.about, "fault": each.fault, "what": each.what} for each in findings]
    views = [_view(each, status) for each in status.views]
    members = [row for each in status.sets for row in _rows(each)]
    lines = [f"{'FAULT' if each.fault else 'note '}  {each.about}: {each.what}\n" for each in findings]
    unwell = any(each.fault for each in findings)
    verdict = "unhealthy\n" if unwell else "healthy\n"
    text = "\n".join(part for part in (_table(views), _table(members), "".join(lines) + verdict) if part)
    return Display(text, rows, EXIT_UNWELL if unwell else 0)


def _table(rows: Sequence[Row]) -> str:
    return written(Display("", rows), TABLE)


def _leaders(views: Sequence[ControllerView]) -> str:
    return "".join(f"{line}\n" for line in _controllers(views)) + "\n"


def _controllers(views: Sequence[ControllerView]) -> Iterator[str]:
    for view in views:
        group = view.metadata.group if view.metadata is not None else ""
        says = f"leads {group}" if view.leads else f"follows {view.leader}" if view.leader else "no leader"
        yield f"controller {view.address}: {says if view.metadata is not None else view.why}"


def _view(view: ControllerView, status: Status) -> Row:
    row: dict[str, object] = {
        "controller": view.address,
        "leads": view.leads if view.metadata is not None else None,
        "leader": view.leader or None,
    }
    for each in status.sets:
        record = (view.sets or {}).get(each.name)
        row[each.name] = (
            None
            if record is None
            else f"master {record.master_broker_id or '-'} epoch {record.master_epoch}"
            f" set {','.join(str(one.broker_id) for one in record.in_sync_replicas or ())}"
            f" ({record.sync_state_set_epoch})"
        )
    return row


def _rows(found: SetStatus) -> list[Row]:
    return [_row(found, each) for each in found.members]


def _row(found: SetStatus, member: MemberStatus) -> Row:
    is_master = found.master is member
    calls_itself = not found.is_on_record and member.calls_itself_master
    return {
        "set": found.name,
        "id": member.broker_id,
        "address": member.address,
        "role": "master" if is_master or calls_itself else "replica",
        "alive": member.alive,
        "in_sync": member.in_sync,
        "master_epoch": found.record.master_epoch if is_master else None,
        "set_epoch": found.record.sync_state_set_epoch if is_master else None,
        "last_epoch": member.last_epoch,
        "end": member.end,
        "lag": found.lag(member),
        "says": member.why or None,
    }
