"""What a broker keeps beside the log, as it lies on its disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.cluster import Cluster
from replispec.runtime.primitives.jsons import loads
from replispec.wire.rocketmq import constants

FILES = (constants.GROUPS_FILE, constants.DELAYS_FILE, constants.REQUEST_MODES_FILE)
NO_VALUES = ("dataVersion", constants.TABLE_CHECKSUM)
Tables = Mapping[str, object]
"""What each file holds, with all of its keys, by the file's name; None for one that is not there. Without
checksum and version: a replica of Java's counts its own on with each group that it takes over, every ten
seconds."""


def on_disk(cluster: Cluster, broker: str) -> Tables:
    """The tables of a broker of the lab. Raises RemoteProtocolError when one is being written."""
    folder = cluster.folder / "data" / broker
    return {name: _read(folder / name) for name in FILES}


def _read(path: Path) -> object:
    try:
        found = loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return {key: found[key] for key in found if key not in NO_VALUES} if isinstance(found, dict) else found


def forget(cluster: Cluster, broker: str) -> None:
    """Remove them, and the copies that Java keeps of them, while the broker does not run."""
    folder = cluster.folder / "data" / broker
    for name in FILES:
        for path in (folder / name).parent.glob(f"{Path(name).name}*"):
            path.unlink()


def go_on(before: Tables, after: Tables) -> bool:
    """Whether a master has these tables that it had copied: as they were, but for how far each level of
    delayed messages was delivered, which only grows."""
    others = [name for name in FILES if name != constants.DELAYS_FILE]
    was, now = (_inner(each[constants.DELAYS_FILE], "offsetTable") for each in (before, after))
    if any(before[name] != after[name] for name in others) or not isinstance(was, dict):
        return False
    return isinstance(now, dict) and all(now.get(level, -1) >= place for level, place in was.items())


def configured(tables: Tables, topic: str, group: str) -> tuple[object, object, object]:
    """Of a group: whether it may consume, how it receives a topic; and how far each level of delayed messages
    was delivered. None for what is not there."""
    groups = _inner(tables[constants.GROUPS_FILE], "subscriptionGroupTable", group)
    mode = _inner(tables[constants.REQUEST_MODES_FILE], "messageRequestModeMap", topic, group)
    delays = _inner(tables[constants.DELAYS_FILE], "offsetTable")
    return _inner(groups, "consumeEnable"), (_inner(mode, "mode"), _inner(mode, "popShareQueueNum")), delays


def _inner(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
