"""What a path may be.

Source: apache/zookeeper 3.5.9, PathUtils.validatePath.
"""

from __future__ import annotations

from replispec.wire.zookeeper.constants import ROOT, SEQUENCE_FORMAT


def names_a_node(path: str) -> bool:
    """Whether this may be the path of a node."""
    if path == ROOT:
        return True
    if not path.startswith(ROOT) or path.endswith(ROOT):
        return False
    if path.isascii() and path.isprintable() and "//" not in path and "/." not in path:
        return True
    return not any(name in ("", ".", "..") for name in path[1:].split(ROOT)) and not any(
        map(_is_refused, path)
    )


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
