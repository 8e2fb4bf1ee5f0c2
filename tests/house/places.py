"""Places that one message touches: the files that name it, by room.

The rule: a message of a request code has as names the messages of the specification that declare this code,
and the name of the code in an enum whose name ends in RequestCode. A file touches the message when one of
these names stands in it as a whole word, in code, text or comment. Captures, transcripts of runs and pages
that people write are no places: Python, YAML, protobuf, Lua, JSON and Markdown count, the latter below
`generated` only.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.house.tree import LEFT_BEHIND

SUFFIXES = {".py", ".yaml", ".proto", ".lua", ".json"}


def names_of(root: Path, code: int) -> tuple[str, ...]:
    """How a request with this code, its answer and the code itself are called in the specification."""
    found = set()
    for path in sorted((root / "spec" / "proto").rglob("*.proto")):
        text = path.read_text()
        for block in re.split(r"^(?=message |enum )", text, flags=re.MULTILINE):
            head = re.match(r"(message|enum) (\w+)", block)
            if head and head[1] == "message" and re.search(rf"\bcode: {code}\b", block):
                found.add(head[2])
            elif head and head[2].endswith("RequestCode"):
                found |= {name.removeprefix("REQUEST_CODE_") for name in _values(block, code)}
    return tuple(sorted(found))


def _values(block: str, number: int) -> Iterator[str]:
    for value in re.finditer(rf"^\s*(\w+) = {number}\b", block, re.MULTILINE):
        yield value[1]


def naming(root: Path, room: str, names: Sequence[str]) -> list[Path]:
    """The files of a room that name one of these."""
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    suffixes = SUFFIXES | ({".md"} if room == "generated" else set())
    return [
        path
        for path in sorted((root / room).rglob("*"))
        if path.suffix in suffixes
        and path.is_file()
        and not LEFT_BEHIND.intersection(path.relative_to(root).parts)
        and word.search(path.read_text(errors="replace"))
    ]
