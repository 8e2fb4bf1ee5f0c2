"""What Java's client and mqadmin print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

Positions = Mapping[int, int]
"""What a group reads next, by queue."""
ADDRESS = re.compile(r"[0-9]+(?:\.[0-9]+){3}:[0-9]+")


def acknowledged(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that were acknowledged without reserve."""
    return {str(line["key"]) for line in lines if line["status"] == "SEND_OK"}


def read(lines: Iterable[Mapping[str, object]]) -> set[str]:
    """Keys of the messages that a consumer was given and did not refuse, a refused one when it came again."""
    return {str(line["key"]) for line in lines if line["status"] in ("READ", "READ_AGAIN")}


def longest_gap_ms(lines: Iterable[Mapping[str, object]]) -> int:
    """The longest time between two acknowledgements of one producer."""
    times = [int(str(line["at_ms"])) for line in lines if line["status"] == "SEND_OK"]
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


def accepted_ms(lines: Iterable[Mapping[str, object]], after_ms: int) -> int | None:
    """When the first message was acknowledged of those whose sending began after a moment: an earlier one may
    be acknowledged by who is no more. None while there is none."""
    begun = (line for line in lines if line["status"] == "SEND_OK" and int(str(line["begun_ms"])) > after_ms)
    return min((int(str(line["at_ms"])) for line in begun), default=None)


def group_told(said: str) -> tuple[str, set[str]]:
    """Addresses of the leader and of all members, by `mqadmin getControllerMetaData`."""
    return _value(said, "#ControllerLeaderAddress"), _addresses(said, "#Peer:")


def members_told(said: str) -> tuple[str, int, set[str]]:
    """Address and epoch of the master, and addresses of the SyncStateSet, by `mqadmin getSyncStateSet`."""
    epoch = _value(said, "#MasterEpoch")
    return _value(said, "#MasterAddr"), int(epoch or 0), _addresses(said, "InSyncReplica:")


def _value(said: str, key: str) -> str:
    """What stands behind a key, empty when it is not there."""
    found = [line.partition("\t")[2] for line in said.splitlines() if line.startswith(f"{key}\t")]
    return found[0].strip() if found else ""


def _addresses(said: str, key: str) -> set[str]:
    """The addresses in all lines of a key, one in each."""
    found = (ADDRESS.search(line) for line in said.splitlines() if line.startswith(f"{key}\t"))
    return {each.group() for each in found if each is not None}


def given_again(
    lines: Iterable[Mapping[str, object]], floors: Sequence[tuple[int, Positions]]
) -> list[Mapping[str, object]]:
    """Lines of a consumer that was given what its group had read by then: a floor is how far it had, and when
    that was known, in milliseconds. What was refused comes from a queue of its own, and is not among them."""

    def is_below(line: Mapping[str, object]) -> bool:
        at_ms, queue, offset = (int(str(line[key])) for key in ("at_ms", "queue", "offset"))
        return any(at_ms > floor_ms and offset < floor.get(queue, 0) for floor_ms, floor in floors)

    return [line for line in lines if line["status"] == "READ" and is_below(line)]


def fallen(floor: Positions, told: Positions) -> set[int]:
    """Queues of which a broker tells less than is known."""
    return {queue for queue, position in floor.items() if told.get(queue, 0) < position}
