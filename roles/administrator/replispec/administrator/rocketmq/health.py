"""What is wrong with a cluster, by what its processes say: a pure reading of a status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replispec.administrator.rocketmq.status import ControllerView, SetStatus, Status


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that is not as it should be; what is no `fault` is worth knowing, and nothing is broken."""

    about: str
    what: str
    fault: bool = True


def judged(status: Status, *, lag_bytes: int) -> Sequence[Observation]:
    """What is found, faults first. A member of the SyncStateSet that is further behind than so many bytes is
    a fault."""
    found = [*_of_controllers(status.views)]
    found += [Observation(name, "no controller knows this broker set") for name in status.missing]
    for each in status.sets:
        found += _of_set(each, lag_bytes) if each.is_on_record else _without_record(each)
    return sorted(found, key=lambda each: not each.fault)


def _of_controllers(views: Sequence[ControllerView]) -> Iterator[Observation]:
    for view in views:
        if view.why:
            yield Observation(view.address, f"this controller does not answer as it should: {view.why}")
        elif not view.leader:
            yield Observation(view.address, "this controller knows no leader")
    leading = [each.address for each in views if each.leads]
    if len(leading) > 1:
        yield Observation(", ".join(leading), "several controllers say that they lead")
    if not leading:
        yield Observation("controllers", "none of those that were asked leads")
    named = {each.leader for each in views if each.leader}
    if len(named) > 1:
        yield Observation("controllers", f"they name different leaders: {', '.join(sorted(named))}")
    told = [each for each in views if each.sets is not None]
    for other in told[1:]:
        for name in sorted({*(told[0].sets or ()), *(other.sets or ())}):
            if (told[0].sets or {}).get(name) != (other.sets or {}).get(name):
                yield Observation(name, f"{told[0].address} and {other.address} have different records of it")


def _of_set(found: SetStatus, lag_bytes: int) -> Iterator[Observation]:
    master = found.master
    if not found.record.master_broker_id:
        yield Observation(found.name, "no master")
    elif master is None:
        yield Observation(found.name, f"its master {found.record.master_broker_id} is no member of it")
    elif not master.alive:
        yield Observation(found.name, f"its master {master.broker_id} is not alive")
    yield from _of_masters(found)
    yield from _of_members(found, lag_bytes)


def _without_record(found: SetStatus) -> Iterator[Observation]:
    yield Observation(found.name, "no controller that leads tells its record: brokers go on as they are")
    yield from _of_masters(found)
    for member in found.members:
        if member.why:
            yield Observation(found.name, f"broker at {member.address} does not answer: {member.why}")


def _of_masters(found: SetStatus) -> Iterator[Observation]:
    master, epoch = found.master, found.record.master_epoch
    claiming = [each for each in found.members if each.calls_itself_master]
    if len(claiming) > 1:
        listed = ", ".join(f"{each.broker_id} ({each.address})" for each in claiming)
        yield Observation(found.name, f"several brokers say that they are master: {listed}")
    if master is None:
        return
    if master.epochs is not None and not master.calls_itself_master:
        yield Observation(found.name, f"broker {master.broker_id} is master on record and denies it")
    if master.last_epoch is not None and epoch is not None and master.last_epoch > epoch:
        yield Observation(
            found.name,
            f"the log of broker {master.broker_id} has masterEpoch {master.last_epoch}, the record only "
            f"{epoch}: the controllers have lost records",
        )
    if found.routed is not None and found.routed != master.address:
        yield Observation(
            found.name, f"name servers route to {found.routed or 'no master'}, the master is {master.address}"
        )


def _of_members(found: SetStatus, lag_bytes: int) -> Iterator[Observation]:
    for member in found.members:
        who = f"broker {member.broker_id} ({member.address})"
        if member.in_sync and not member.alive:
            yield Observation(found.name, f"{who} is in the SyncStateSet and not alive")
        if member.why and (member.alive or member.in_sync):
            yield Observation(found.name, f"{who} does not answer: {member.why}")
        if not member.in_sync:
            yield Observation(found.name, f"{who} is not in the SyncStateSet", fault=False)
        lag = found.lag(member)
        if lag is not None and lag > lag_bytes:
            yield Observation(
                found.name, f"{who} is {lag} bytes behind its master", fault=bool(member.in_sync)
            )
        if lag is not None and lag < 0:
            yield Observation(found.name, f"the log of {who} ends {-lag} bytes after its master", fault=False)
