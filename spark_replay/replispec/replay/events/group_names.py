"""What broker groups are called: CONTROLLERGROUP/NAME, from the second life on with #K behind it.

Where nothing captured tells the broker set, a group is `unknown (ADDRESS)`; where nothing tells its
controller group, `unknown/NAME` or `unknown (ADDRESS)/NAME`. Names come from hostile bytes and may hold any
sign: in doubt a group is one of which less is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase

UNKNOWN_GROUP = "unknown"
_LATER_LIFE = re.compile(r"#[0-9]+\Z")


def is_named(group: str) -> bool:
    """False of a group that is no more than an address of which nothing tells the broker set."""
    return group != UNKNOWN_GROUP and not (_of_unknown(group) and group.endswith(")"))


def fits(group: str, patterns: Collection[str]) -> bool:
    """Whether a pattern fits CONTROLLERGROUP/NAME or the name alone, both with its life and without; * stands
    for any characters, and nothing else does."""
    texts = {text for each in (group, _LATER_LIFE.sub("", group)) for text in (each, _name(each))}
    return any(_is_like(text, pattern) for pattern in patterns for text in texts)


def may_fit(group: str, patterns: Collection[str]) -> bool:
    """Whether a group fits, or may be one that does, as nothing captured tells all of its name."""
    if fits(group, patterns) or not is_named(group):
        return True
    if not _of_unknown(group):
        return False
    # Any controller group may stand before its name: then what is left of a pattern has to fit the rest.
    rest = f"/{_name(_LATER_LIFE.sub('', group))}"
    return any(_is_like(rest, pattern[at:]) for pattern in patterns for at in range(len(pattern)))


def _is_like(text: str, pattern: str) -> bool:
    """Whether a pattern fits all of a text. Every sign but * stands for itself: names may hold any."""
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _of_unknown(group: str) -> bool:
    return group.startswith((f"{UNKNOWN_GROUP} (", f"{UNKNOWN_GROUP}/"))


def _name(group: str) -> str:
    return group.rpartition("/")[2]
