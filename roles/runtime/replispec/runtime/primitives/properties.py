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
    held: list[str] = []
    for raw in re.split(r"\r\n|\n|\r", text):
        line = raw.lstrip(" \t\f")
        if not held and (not line or line[0] in "#!"):
            continue
        # A line that goes on ends with an odd number of these; the pieces before end with an even one.
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2
        held.append(line[:-1] if goes_on else line)
        if not goes_on:
            lines.append("".join(held))
            held = []
    if held:
        lines.append("".join(held))
    return lines


def _unescaped(text: str, line: str) -> str:
    def one(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] != "u":
            return _ESCAPES.get(escape, escape)
        if len(escape) == 1:
            raise _refused(line, "four hexadecimal digits after \\u")
        return chr(int(escape[1:], 16))

    try:
        # Java writes a character beyond 16 bits as two escapes.
        return _ESCAPE.sub(one, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise _refused(line, "both halves of a character in \\u") from None


def _refused(line: str, allowed: str) -> ConfigurationError:
    return ConfigurationError(line.split("=", maxsplit=1)[0].strip(), line, allowed)


def _escaped(text: str, *, in_name: bool = False) -> str:
    text = text.replace("\\", "\\\\")
    for letter, character in _ESCAPES.items():
        text = text.replace(character, f"\\{letter}")
    if in_name:
        return re.sub(r"([\s=:#!])", r"\\\1", text)
    return re.sub(r"^ ", r"\\ ", text)
