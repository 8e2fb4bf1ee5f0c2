"""Batches of records as cases word them, right and wrong ones, and as cases compare those that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.conformance.encoding import Unsendable
from replispec.conformance.values import number
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.wire.kafka.records import Record, RecordBatch, RecordBatchFixed

_PLACES: Final = RecordBatchFixed.places()
_NOBODY: Final = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
"""What a batch says of a producer that has no id."""
_OVERWRITTEN: Final = ("magic", "crc", "batch_length")
"""Said wrongly, these do not change the checksum."""
_OWN: Final = ("values", "time", "value_bytes", "keep")


def batch_bytes(said: object, leader_epoch: int) -> bytes | None:
    """The bytes of `records`: a list of values is one batch, an empty one none.

    A mapping is one, too: `values`, or `value_bytes` for a single long one, `time`, any field of the head,
    `keep` for its first bytes alone; a list of mappings is several. `leader_epoch` is that of a batch that
    names none. Raises Unsendable.
    """
    if said is None:
        return None
    if said == []:
        return b""
    if isinstance(said, list) and said and isinstance(said[0], Mapping):
        return b"".join(_batch(each, leader_epoch) for each in said)
    return _batch(said if isinstance(said, Mapping) else {"values": said}, leader_epoch)


def _batch(said: Mapping[str, object], leader_epoch: int) -> bytes:
    if unknown := sorted(set(said) - {*_PLACES, *_OWN}):
        raise Unsendable(f"a batch has no {unknown[0]}: {', '.join((*_OWN, *_PLACES))}")
    time = number(said.get("time", 1))
    values = [b"x" * number(said["value_bytes"])] if "value_bytes" in said else _values(said.get("values"))
    records = [Record(offset_delta=at, value=value) for at, value in enumerate(values)]
    head = {
        **_NOBODY,
        "partition_leader_epoch": leader_epoch,
        "last_offset_delta": len(records) - 1,
        "first_timestamp": time,
        "max_timestamp": time,
        "records_count": len(records),
    }
    numbers = {name: number(value) for name, value in said.items() if name in _PLACES}
    head |= {name: value for name, value in numbers.items() if name not in _OVERWRITTEN}
    try:
        data = bytearray(RecordBatch(**head, records=b"".join(each.encode() for each in records)).encode())
    except (LocalProtocolError, TypeError) as fault:
        raise Unsendable(f"a batch: {fault}") from None
    for name in set(numbers).intersection(_OVERWRITTEN):
        at, size = _PLACES[name]
        data[at : at + size] = (numbers[name] & ((1 << 8 * size) - 1)).to_bytes(size, "big")
    return bytes(data[: number(said["keep"])] if "keep" in said else data)


def _values(values: object) -> list[bytes]:
    if not isinstance(values, list):
        raise Unsendable("a batch has `values`, a list")
    return [str(each).encode() for each in values]


def shown_batches(data: bytes) -> Mapping[str, object]:
    """What whole batches hold: `values` and `offsets` of all records, `batches` by their heads; `bytes` are
    those of the answer. Raises RemoteProtocolError for one that is damaged; a last one that is cut is left
    out, as readers do."""
    batches: list[Mapping[str, object]] = []
    at = 0
    while len(data) - at >= sum(_PLACES["records_count"]):
        head = RecordBatchFixed.decode(data, at)
        end = at + head.batch_length + sum(_PLACES["batch_length"])
        if head.batch_length < 0 or end > len(data):
            break
        if not RecordBatchFixed.crc_holds(data, at, end):
            raise RemoteProtocolError("a batch whose checksum does not hold", offset=at)
        batches.append({**head._asdict(), "values": _records(data, at, end)})
        at = end
    values = [value for each in batches for value in _listed(each["values"])]
    offsets = [
        number(each["base_offset"]) + step
        for each in batches
        for step in range(number(each["last_offset_delta"]) + 1)
    ]
    return {"values": values, "offsets": offsets, "batches": batches, "bytes": len(data)}


def _records(data: bytes, at: int, end: int) -> list[str]:
    batch, _ = RecordBatch.decode_at(data, at, end)
    found, place = [], 0
    for _ in range(batch.records_count):
        record, place = Record.decode_at(batch.records, place, len(batch.records))
        found.append(bytes(record.value or b"").decode("utf-8", "replace"))
    return found


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
