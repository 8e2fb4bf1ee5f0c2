"""What requests need of whoever sends them, as generated tables say it."""

from __future__ import annotations

from typing import NamedTuple


class Need(NamedTuple):
    """A right by name, and of what: the header's key, or the keys in a JSON body (`in_body`) of lists and
    objects that lead to it; without keys of everything. `when`: the key of a flag; only where it is set."""

    right: str
    keys: tuple[str, ...] = ()
    in_body: bool = False
    when: str = ""
