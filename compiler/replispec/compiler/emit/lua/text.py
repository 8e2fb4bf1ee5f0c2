"""Values as Lua source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

LINE_LENGTH = 110
# What may stand in a table: a value that is None is left out.
Value = str | int | bool | None | Sequence["Value"] | Mapping[str, "Value"] | Mapping[int, "Value"]


def lua_value(value: Value, indent: int = 0, name: str = "") -> str:
    """`value` as a Lua expression, a member with this `name` when it has one.

    Short ones stand on one line, the members of a record and plain ones fill lines, others have a line each.
    """
    return name + _expression(value, indent, LINE_LENGTH - indent - len(name))


def _expression(value: Value, indent: int, room: int) -> str:
    if isinstance(value, str):
        return _text(value, indent, room)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value is None:
        return "nil"
    members = list(_members(value, indent + 2))
    line = "{" + ", ".join(members) + "}"
    if len(line) < room and "\n" not in line:
        return line
    if _fills_lines(value, members):
        return _filled(members, indent, LINE_LENGTH - room)
    blank = " " * (indent + 2)
    return "{\n" + "".join(f"{blank}{member},\n" for member in members) + " " * indent + "}"


def _fills_lines(
    value: Sequence[Value] | Mapping[str, Value] | Mapping[int, Value], members: Sequence[str]
) -> bool:
    """Whether the members follow each other on lines: those of a record, and those that are no tables."""
    tables = [
        member
        for each, member in zip((each for each in _values(value) if each is not None), members, strict=True)
        if isinstance(each, Mapping | list | tuple)
    ]
    is_record = isinstance(value, Mapping) and len(tables) < len(members)
    return not tables or (is_record and not any("\n" in each for each in tables))


def _values(value: Sequence[Value] | Mapping[str, Value] | Mapping[int, Value]) -> Iterator[Value]:
    yield from value.values() if isinstance(value, Mapping) else value


def _filled(members: Sequence[str], indent: int, start: int) -> str:
    """A table whose members are one after the other on as many lines as they need, the first one being
    `start` columns long already."""
    lines, line, length = [], "{", start + 1
    for member in members:
        # A text in pieces has lines of its own.
        size = LINE_LENGTH if "\n" in member else len(member)
        if length + size + len(" },") > LINE_LENGTH and line.strip() != "":
            lines.append(line.rstrip())
            line, length = " " * (indent + 1), indent + 1
        line += f"{member}, "
        length += size + 2
    return "\n".join([*lines, line]).removesuffix(", ") + "}"


def _members(
    value: Sequence[Value] | Mapping[str, Value] | Mapping[int, Value], indent: int
) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, member in value.items():
            if member is not None:
                name = f"[{key}]" if isinstance(key, int) else key
                yield lua_value(member, indent, f"{name} = ")
    else:
        for member in value:
            yield lua_value(member, indent)


def _text(text: str, indent: int, room: int) -> str:
    """A Lua string; a long one in pieces, so that lines stay short."""
    room -= len('"" ..,')
    pieces = []
    while len(text) > room:
        cut = text.rfind(" ", 1, room) + 1 or room
        pieces.append(text[:cut])
        text = text[cut:]
    quoted = [_quoted(piece) for piece in (*pieces, text)]
    return f" ..\n{' ' * (indent + 2)}".join(quoted)


def _quoted(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(plain, escaped)
    return f'"{text}"'
