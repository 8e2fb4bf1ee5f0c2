"""One decoded frame as a line: for people, and as JSON for scripts.

A frame is a row of the frames table: the table's column names, with None where a column does not apply.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from replispec.runtime.primitives.visible import visible
from replispec.wire.rocketmq.codes import REQUEST_CODE_NAMES, RESPONSE_CODE_NAMES, RemotingFlag

Row = Mapping[str, Any]

VALUE_CHARACTERS_MAXIMUM = 200
NS_PER_SECOND = 10**9
LINE_ENDS_TO_BLANKS = bytes.maketrans(b"\r\n", b"  ")
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


def text_line(row: Row, start_ns: int) -> str:
    """The frame for people: seconds since `start_ns`, who to whom, what, its fields. No line end."""
    whole, rest = divmod(row["time_ns"] - start_ns, NS_PER_SECOND)
    kind = _replication(row) if row["message"] is not None else _remoting(row)
    parts = [f"{whole:>6}.{rest:09}", f"{row['source']} > {row['destination']}", *kind]
    if row["body_size"]:
        parts.append(f"body={row['body_size']}")
    if not row["complete"]:
        parts.append("(bytes of it are missing)")
    return "  ".join(parts)


def _remoting(row: Row) -> Iterator[str]:
    flag, code = row["flag"], row["code"]
    if flag & RemotingFlag.RESPONSE:
        names = [each.name for each in RESPONSE_CODE_NAMES if each.number == code]
        yield f"answer {code}"
    else:
        names = [each.name for each in REQUEST_CODE_NAMES if each.number == code]
        yield f"{'oneway' if flag & RemotingFlag.ONEWAY else 'request'} {code}"
    yield " or ".join(names) or "(unknown code)"
    yield f"opaque={row['opaque']}"
    for key, value in row["ext_fields"] or ():
        yield f"{_shown(key)}={_shown(value)}"
    if row["remark"]:
        yield f"remark={_shown(row['remark'])}"


def _replication(row: Row) -> Iterator[str]:
    yield str(row["message"])
    for column in REPLICATION_COLUMNS:
        if row[column] is not None:
            yield f"{column}={_shown(str(row[column]))}"
    if row["epochs"] is not None:
        entries = ", ".join(f"{entry['epoch']} from {entry['start_offset']}" for entry in row["epochs"])
        yield f"epochs=[{entries}]"


def _shown(value: str | None) -> str:
    return "(none)" if value is None else visible(value, VALUE_CHARACTERS_MAXIMUM)


def json_line(row: Row) -> bytes:
    """The frame for scripts: one JSON object with the columns that apply, ended by a newline.

    A JSON body is put in as JSON when it is well formed, else as text; raw bodies are left out.
    """
    shown = {key: value for key, value in row.items() if value is not None and key != "body"}
    if "ext_fields" in shown:
        shown["ext_fields"] = dict(shown["ext_fields"])
    if "json_body" in shown:
        shown["json_body"] = _json_body(shown["json_body"])
    return orjson.dumps(shown, option=orjson.OPT_APPEND_NEWLINE)


def _json_body(body: bytes) -> Any:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")
    # As it was sent, so that no number loses digits; line ends outside of strings are only white space.
    return orjson.Fragment(body.translate(LINE_ENDS_TO_BLANKS))
