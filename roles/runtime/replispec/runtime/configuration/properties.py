"""Java's properties format.

Source: java.util.Properties.load: comments, continued lines, escapes; text is UTF-8, as RocketMQ reads it.
"""

from __future__ import annotations

import re
from typing import Final

from replispec.runtime.primitives.parameters import ConfigurationError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_PAIR: Final = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)


def read_properties(text: str) -> tuple[dict[str, str], list[str]]:
    """The value of each name, and notes about names that come twice (the last one counts).

    Raises ConfigurationError for an escape that is none.
    """
    found: dict[str, str] = {}
    notes = []
    for line in _logical_lines(text):
        pair = _PAIR.fullmatch(line)
        assert pair is not None, "every line is a pair"
        name, value = _unescaped(pair[1], line), _unescaped(pair[2], line).rstrip()
        if name in found:
            notes.append(f"{name} is set twice: the last value counts")
        found[name] = value
    return found, notes


def write_properties(properties: dict[str, str]) -> str:
    """Lines that `read_properties` reads back."""
    return "".join(
        f"{_escaped(name, in_name=True)}={_escaped(value)}\n" for name, value in properties.items()
    )


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    held: str | None = None
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if held is None and (not line or line[0] in "#!"):
            continue
        held = (held or "") + line
        backslashes = len(held) - len(held.rstrip("\\"))
        if backslashes % 2:
            held = held[:-1]
        else:
            lines.append(held)
            held = None
    if held is not None:
        lines.append(held)
    return lines


def _unescaped(text: str, line: str) -> str:
    def one(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] != "u":
            return _ESCAPES.get(escape, escape)
        if len(escape) == 1:
            name = line.split("=", maxsplit=1)[0].strip()
            raise ConfigurationError(name, line, "four hexadecimal digits after \\u")
        return chr(int(escape[1:], 16))

    return _ESCAPE.sub(one, text)


def _escaped(text: str, *, in_name: bool = False) -> str:
    text = text.replace("\\", "\\\\")
    for letter, character in _ESCAPES.items():
        text = text.replace(character, f"\\{letter}")
    if in_name:
        return re.sub(r"([\s=:#!])", r"\\\1", text)
    return re.sub(r"^ ", r"\\ ", text)
