"""Frames of remoting and of replication as words of one line."""

from collections.abc import Iterator

from replispec.cli.family import FrameWords, names_of_guests
from replispec.cli.frame_text import Row, shown
from replispec.cli.rocketmq.ports import ports
from replispec.wire.rocketmq.codes import REQUEST_CODE_NAMES, RESPONSE_CODE_NAMES, RemotingFlag

# Of a replication frame, in the order of the bytes.
REPLICATION_COLUMNS = (
    "sync_from_last_file",
    "async_learner",
    "broker_id",
    "broker_address",
    "max_offset",
    "last_epoch",
    "offset",
    "epoch",
    "epoch_start_offset",
    "confirm_offset",
)


def words(row: Row) -> Iterator[str]:
    """What the frame is, and its fields."""
    return _replication(row) if row["message"] is not None else _remoting(row)


def _remoting(row: Row) -> Iterator[str]:
    flag, code = row["flag"], row["code"]
    if flag & RemotingFlag.RESPONSE:
        names = [each.name for each in RESPONSE_CODE_NAMES if each.number == code]
        yield f"answer {code}"
    else:
        names = [each.name for each in REQUEST_CODE_NAMES if each.number == code]
        if not names and code in names_of_guests():
            names = [names_of_guests()[code]]
        yield f"{'oneway' if flag & RemotingFlag.ONEWAY else 'request'} {code}"
    yield " or ".join(names) or "(unknown code)"
    yield f"opaque={row['opaque']}"
    for key, value in row["ext_fields"] or ():
        yield f"{shown(key)}={shown(value)}"
    if row["remark"]:
        yield f"remark={shown(row['remark'])}"


def _replication(row: Row) -> Iterator[str]:
    yield str(row["message"])
    for column in REPLICATION_COLUMNS:
        if row[column] is not None:
            yield f"{column}={shown(str(row[column]))}"
    if row["epochs"] is not None:
        entries = ", ".join(f"{entry['epoch']} from {entry['start_offset']}" for entry in row["epochs"])
        yield f"epochs=[{entries}]"


FAMILY = FrameWords(("remoting", "ha_replica", "ha_master"), words, ports)
