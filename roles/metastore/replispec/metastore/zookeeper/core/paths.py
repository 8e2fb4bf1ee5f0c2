"""What a path may be.

Source: apache/zookeeper 3.5.9, PathUtils.validatePath.
"""

from __future__ import annotations

from replispec.metastore.zookeeper.core.values import TreeRefusal, TreeRefused
from replispec.wire.zookeeper.constants import ROOT, SEQUENCE_FORMAT


def check_path(path: str) -> None:
    """Whether this names a node. Raises Refused."""
    if path == ROOT:
        return
    if not path.startswith(ROOT) or path.endswith(ROOT):
        raise TreeRefused(TreeRefusal.BAD_ARGUMENTS)
    if path.isascii() and path.isprintable() and "//" not in path and "/." not in path:
        return
    if any(name in ("", ".", "..") for name in path[1:].split(ROOT)) or any(map(_is_refused, path)):
        raise TreeRefused(TreeRefusal.BAD_ARGUMENTS)


def parent_of(path: str) -> str:
    """The path of the node above one that is not the root."""
    return path[: path.rindex(ROOT)] or ROOT


def numbered(path: str, number: int) -> str:
    """The path of a sequential node, from what was asked for and how many were made before it."""
    return path + SEQUENCE_FORMAT % number


def _is_refused(character: str) -> bool:
    """Whether no name has this character: controls, surrogates, private use and the specials at the end."""
    return (
        character <= "\x1f"
        or "\x7f" <= character <= "\x9f"
        or "\ud800" <= character <= "\uf8ff"
        or "\ufff0" <= character <= "\uffff"
    )
