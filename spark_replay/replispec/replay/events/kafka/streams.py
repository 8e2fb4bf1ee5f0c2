"""What the capture tells of partitions, as events of the streams that the specification declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.kafka.marks import Marks
from replispec.replay.events.kafka.world import Partition, World, is_taken
from replispec.replay.events.kafka.writes import Logs
from replispec.replay.events.observation import Observation
from replispec.replay.events.partition_observations import Fetched
from replispec.replay.events.stream_event import StreamEvent
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.kafka.codes import ErrorCode


def partition_events(world: World) -> Iterator[StreamEvent]:
    """The events of all streams."""
    for own in world.partitions.values():
        for make in _STREAMS:
            yield from make(own)


def _event(stream: str, name: str, own: Partition, row: Observation, /, **told: Any) -> StreamEvent:
    return StreamEvent(stream, name, SimpleNamespace(group=own.group, row=row, **told))


def _or_unknown(value: Any) -> Any:
    return UNKNOWN if value is None else value


def _records(own: Partition) -> Iterator[StreamEvent]:
    for within, each in enumerate(own.records):
        told = {"version": each.version, "epoch": each.epoch, "leader": each.leader, "isr": each.isr}
        assigned = _or_unknown(own.assigned_at(each.zxid))
        yield _event(
            "records", "recorded", own, each.row, **told, assigned=assigned, state=each.state, within=within
        )


def _leaders(own: Partition) -> Iterator[StreamEvent]:
    said = [(each.epoch, each.leader, each.row) for each in own.records]
    said += [(row.epoch or 0, row.leader, row) for row in own.ordered]  # type: ignore[misc]
    known: set[tuple[int, int | None]] = set()
    for within, (epoch, leader, row) in enumerate(said):
        if leader is not None and leader >= 0 and (epoch, leader) not in known:
            known.add((epoch, leader))
            yield _event("leaders", "led", own, row, epoch=epoch, leader=leader, within=within)


def _commands(own: Partition) -> Iterator[StreamEvent]:
    for row in own.ordered:
        if is_taken(row):
            told = {"epoch": row.epoch, "controller_epoch": row.controller_epoch}
            yield _event("commands", "taken", own, row, broker=row.address, **told)


def _watermarks(own: Partition) -> Iterator[StreamEvent]:
    marks = Marks(own)
    for row in own.fetched:
        if row.code == ErrorCode.NONE and row.high_watermark is not None and row.high_watermark >= 0:
            told = marks.told(row)
            if told is not None:
                known, least = told
                yield _event(
                    "watermarks", "told", own, row,
                    broker=row.address, high_watermark=row.high_watermark, known=known, least=least,
                )  # fmt: skip


def _joins(own: Partition) -> Iterator[StreamEvent]:
    marks = Marks(own)
    within = 0
    for before, after in zip(own.records, own.records[1:], strict=False):
        is_leaders = before.leader == after.leader and before.epoch == after.epoch
        if after.version != before.version + 1 or after.leader is None or not is_leaders:
            continue
        for member in sorted(after.isr - before.isr):
            asked, known = marks.caught_up(after, member)
            told = {"member": member, "asked": asked, "known": known}
            yield _event("joins", "joined", own, after.row, **told, within=within)
            within += 1


def _fetches(own: Partition) -> Iterator[StreamEvent]:
    last: dict[str, tuple[int, int]] = {}
    for row in own.fetched:
        if row.member is None or row.member < 0:
            continue
        stream = f"{row.connection} {row.direction if row.code is not None else 1 - row.direction}"
        before = last.get(stream)
        asked = row.asked if row.asked is not None else before[0] if before is not None else None
        if asked is None:
            continue
        order = row.order if row.request_order is None else row.request_order
        given = _given(row, asked)
        renewed = before is not None and _commanded(own, row.member, before[1], order)
        last[stream] = asked if given is None else given, order
        yield _event(
            "fetches", "asked", own, row,
            stream=stream, member=row.member, asked=asked, given=given, renewed=renewed,
        )  # fmt: skip


def _given(row: Fetched, asked: int) -> int | None:
    """The end of what was given; None after an error, which may make a follower begin anywhere."""
    if row.code not in (ErrorCode.NONE, None):
        return None
    return max([asked, *(each["last"] + 1 for each in row.batches or ())])


def _commanded(own: Partition, member: int, since: int, until: int) -> bool:
    """Whether a broker carried out a command in between; of one whose address is not known it may have."""
    addresses = own.world.addresses.get(member)
    if not addresses:
        return True
    return any(since <= each.order <= until for address in addresses for each in own.reigns.get(address, ()))


def _writes(own: Partition) -> Iterator[StreamEvent]:
    for within, each in enumerate(Logs(own).writes):
        yield _event(
            "writes", "acknowledged", own, each.row,
            acks=each.acks, offset=each.offset, last=each.last, epoch=_or_unknown(each.epoch),
            lost_to=UNKNOWN if each.epoch is None else each.lost_to,
            unclean=False if each.lost_to is None else _or_unknown(each.unclean), within=within,
        )  # fmt: skip


def _batches(own: Partition) -> Iterator[StreamEvent]:
    known: set[tuple[int, int, int]] = set()
    carried = ((row, each) for row in own.fetched for each in row.batches or ())
    for within, (row, each) in enumerate(carried):
        new = each["base"], each["epoch"], each["crc"]
        if new not in known:
            known.add(new)
            told = {"offset": each["base"], "epoch": each["epoch"], "crc": each["crc"]}
            yield _event("batches", "batch", own, row, **told, within=within)


def _commits(own: Partition) -> Iterator[StreamEvent]:
    unclean: Any = True if own.unclean else False if own.is_whole else UNKNOWN
    known: set[tuple[int, int]] = set()
    for within, (row, each) in enumerate(_committed(own)):
        new = each["base"], each["crc"]
        if new not in known:
            known.add(new)
            told = {"offset": each["base"], "crc": each["crc"], "unclean": unclean}
            yield _event("commits", "committed", own, row, **told, within=within)


def _committed(own: Partition) -> Iterator[tuple[Observation, dict[str, int]]]:
    for row in own.fetched:
        for each in row.batches or ():
            if row.code == ErrorCode.NONE and each["last"] < (row.high_watermark or 0):
                yield row, each
    for write in own.appended:
        if write.code == ErrorCode.NONE and write.acks == -1:
            yield from ((write, each) for each in write.batches or ())


_STREAMS: Final[Sequence[Callable[[Partition], Iterator[StreamEvent]]]] = (
    _records, _leaders, _commands, _watermarks, _joins, _fetches, _writes, _batches, _commits,
)  # fmt: skip
