"""ZooKeeper's messages for tests: any message, the golden ones, and their bytes by an encoder of its own."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from replispec.runtime.primitives.binary import EmptyMessage
from replispec.wire.zookeeper import connection, operations
from tests.wire.strategies import INT32, messages
from tests.wire_zookeeper import jute

VECTORS = Path(__file__).parents[2] / "spec/vectors/zookeeper/messages.yaml"
MODULES = (connection, operations)
MESSAGES: tuple[type[Any], ...] = tuple(
    each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and dataclasses.is_dataclass(each) and each.__module__ == module.__name__
)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
LONG = (
    "zxid",
    "czxid",
    "mzxid",
    "pzxid",
    "ctime",
    "mtime",
    "session_id",
    "ephemeral_owner",
    "last_zxid_seen",
)
# What stands for an operation or a result of each type in a multi.
PARTS = {
    "MultiOperation": {1: "create", 2: "delete", 5: "set_data", 13: "check"},
    "MultiResult": {1: "create", 2: "", 5: "set_data", 13: "", -1: "failed"},
}


def any_message(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any message of this class."""
    if kind.__name__ in PARTS:
        return st.sampled_from([*PARTS[kind.__name__].items()]).flatmap(lambda part: _of_type(kind, *part))
    ranges: dict[tuple[str, str], st.SearchStrategy[Any]] = {
        (kind.__name__, name): INT64 for name in (*LONG, "relative_zxid")
    }
    ranges["MultiRequest", "operations"] = st.deferred(lambda: _list(operations.MultiOperation))
    ranges["MultiResponse", "results"] = st.deferred(lambda: _list(operations.MultiResult))
    ranges["AdminWordFrame", "word"] = st.sampled_from([0x72756F6B, 0x73727672])
    ranges |= {("Stat", name): INT64 for name in LONG}
    return messages(kind, ranges)


def _list(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.lists(any_message(kind), max_size=4)


def _of_type(kind: type[Any], number: int, part: str) -> st.SearchStrategy[Any]:
    values: dict[str, st.SearchStrategy[Any]] = {"op_code": st.just(number)}
    if kind is operations.MultiResult:
        values["error"] = INT32
    if part == "failed":
        values[part] = INT32
    elif part:
        hint = typing.get_type_hints(kind)[part]
        values[part] = any_message(typing.get_args(hint)[0])
    return st.builds(kind, **values)


@dataclass(frozen=True)
class Golden:
    """One message of spec/vectors as bytes and as an object."""

    name: str
    kind: type[Any]
    data: bytes
    message: Any


def golden() -> list[Golden]:
    """The golden messages, in the order of the file."""
    kinds = {kind.__name__: kind for kind in MESSAGES}
    found = []
    for item in yaml.safe_load(VECTORS.read_text("utf-8"))["messages"]:
        kind = kinds[item["message"]]
        data = b"".join(bytes.fromhex(group.partition("|")[0]) for group in item["bytes"])
        found.append(Golden(item["name"], kind, data, build(kind, item["fields"])))
    return found


def build(kind: type[Any], values: dict[str, Any]) -> Any:
    """The message with these values, as YAML has them."""
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    kinds = [each for each in (hint, *typing.get_args(hint)) if each is not type(None)]
    if isinstance(value, list):
        lists = [each for each in kinds if typing.get_origin(each) is list]
        element = typing.get_args(lists[0])[0] if lists else kinds[-1]
        return [_value(element, each) for each in value]
    if isinstance(value, dict):
        element = next(each for each in kinds if dataclasses.is_dataclass(each))
        return build(typing.cast("type[Any]", element), value)
    return bytes.fromhex(value) if bytes in kinds and value is not None else value


# ---- the same by an encoder of its own -----------------------------------------------------------


def _acl(entries: list[Any] | None) -> list[Any] | None:
    if entries is None:
        return None
    return [(each.permissions, (each.scheme, each.expression)) for each in entries]


def _stat(stat: Any) -> list[Any]:
    return [getattr(stat, each.name) for each in dataclasses.fields(stat)]


def _create(it: Any) -> list[Any]:
    return [it.path, it.data, _acl(it.acl), it.flags]


def _plain(it: Any) -> list[Any]:
    values = {each.name: getattr(it, each.name) for each in dataclasses.fields(it)}
    return [_stat(value) if name == "stat" else value for name, value in values.items()]


def _operation(it: Any) -> tuple[int, list[Any]]:
    part = getattr(it, PARTS["MultiOperation"][it.op_code])
    return it.op_code, _create(part) if it.op_code == 1 else _plain(part)


def _result(it: Any) -> tuple[int, int, list[Any]]:
    name = PARTS["MultiResult"][it.op_code]
    values = [] if not name else [it.failed] if name == "failed" else _plain(getattr(it, name))
    return it.op_code, it.error, values


def _connect(name: str) -> Callable[[Any], bytes]:
    def write(it: Any) -> bytes:
        data = jute.write(name, [*_plain(it)[:-1], bool(it.read_only)])
        return jute.framed(data[:-1] if it.read_only is None else data)

    return write


OTHERWISE: dict[str, Callable[[Any], bytes]] = {
    "AdminWordFrame": lambda it: bytes.fromhex(f"{it.word:08x}"),
    "ConnectRequest": _connect("ConnectRequest"),
    "ConnectResponse": _connect("ConnectResponse"),
    "RequestFrame": lambda it: jute.framed(jute.write("RequestHeader", (it.xid, it.op_code)), it.body),
    "ReplyFrame": lambda it: jute.framed(jute.write("ReplyHeader", (it.xid, it.zxid, it.error)), it.body),
    "AccessEntry": lambda it: jute.write("ACL", (it.permissions, (it.scheme, it.expression))),
    "CreateRequest": lambda it: jute.write("CreateRequest", _create(it)),
    "MultiRequest": lambda it: jute.multi([_operation(each) for each in it.operations]),
    "MultiOperation": lambda it: jute.multi([_operation(it)]).removesuffix(jute.END),
    "MultiEnd": lambda _: jute.END,
    "MultiResponse": lambda it: jute.results([_result(each) for each in it.results]),
    "MultiResult": lambda it: jute.results([_result(it)]).removesuffix(jute.END),
    "AuthRequest": lambda it: jute.write("AuthPacket", _plain(it)),
    "SetWatchesRequest": lambda it: jute.write("SetWatches", _plain(it)),
    "WatchNotification": lambda it: jute.write("WatcherEvent", _plain(it)),
}
"""Messages that are more than a record of their name, or have another one."""


def by_jute(message: Any) -> bytes:
    """The bytes of the message as ZooKeeper's own record language has them."""
    name = type(message).__name__
    if isinstance(message, EmptyMessage):
        return b""
    write = OTHERWISE.get(name)
    return write(message) if write is not None else jute.write(name, _plain(message))
