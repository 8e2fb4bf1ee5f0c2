"""Which breaks the changelog names, by the id that a comparison prints.

A line names a break with the word `breaks:` and the id, as in

    - The epoch of a master has 64 bits. `breaks: FAMILY AlterSyncStateSetRequest.master_epoch`

Several ids stand between commas. Only lines that the older changelog does not have count: what was named for
an earlier release excuses nothing later.
"""

from __future__ import annotations

import re
from typing import Final

_NAMED: Final = re.compile(r"breaks:\s*([^`\n]+)")


def named_breaks(changelog: str, older: str = "") -> frozenset[str]:
    """The ids that the lines of `changelog` name which `older` does not hold."""
    known = set(older.splitlines())
    lines = (line for line in changelog.splitlines() if line not in known)
    ids = (each for line in lines for found in _NAMED.findall(line) for each in found.split(","))
    return frozenset(" ".join(each.split()).rstrip(".") for each in ids)
