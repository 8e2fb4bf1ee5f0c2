"""Markdown pages of our own protobuf packages: every message, field, number and meaning."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf import descriptor_pb2

from replispec.compiler.check.own_messages import SCALARS, OwnFile

_NOTE = "<!-- made by `make generate`; change the specification, not this page -->"
_Kind = descriptor_pb2.FieldDescriptorProto
_SYNTAX, _MESSAGE, _ENUM, _FIELD, _VALUE = 12, 4, 5, 2, 2


def own_page(file: OwnFile) -> str:
    """The page of one .proto: its own words, then messages, then enums."""
    lines = [_NOTE, "", f"# {file.parsed.package}", ""]
    lines += [*_paragraphs(file), ""]
    for number, message in file.messages():
        lines += _message(file, number, message)
    for number, enum in enumerate(file.parsed.enum_type):
        lines += [f"## {enum.name}", _cell(file.about(_ENUM, number)), ""]
        lines += ["| number | name | meaning |", "| --- | --- | --- |"]
        for position, value in enumerate(enum.value):
            about = file.about(_ENUM, number, _VALUE, position) or "nobody set it"
            lines.append(f"| {value.number} | {value.name} | {_cell(about)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _paragraphs(file: OwnFile) -> Iterator[str]:
    """The comment that opens the file, its paragraphs kept."""
    for location in file.parsed.source_code_info.location:
        if tuple(location.path) == (_SYNTAX,):
            for line in location.leading_comments.rstrip().splitlines():
                yield line.strip()


def _message(file: OwnFile, number: int, message: descriptor_pb2.DescriptorProto) -> Iterator[str]:
    yield from (f"## {message.name}", "", _cell(file.about(_MESSAGE, number)), "")
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    abouts = {f".{file.parsed.package}.{each.name}": file.about(_MESSAGE, at) for at, each in file.messages()}
    if message.field:
        yield "| number | field | type | meaning |"
        yield "| --- | --- | --- | --- |"
    for position, item in enumerate(message.field):
        about = file.about(_MESSAGE, number, _FIELD, position) or abouts[item.type_name]
        entry = entries.get(item.type_name.rsplit(".", 1)[-1]) if item.type_name else None
        kind = _type(item) if entry is None else f"map of {_type(entry.field[0])} to {_type(entry.field[1])}"
        if item.label == _Kind.LABEL_REPEATED and entry is None:
            kind = f"list of {kind}"
        if item.proto3_optional:
            kind += ", may be absent"
        elif item.HasField("oneof_index"):
            kind += f", one of `{message.oneof_decl[item.oneof_index].name}`"
        yield f"| {item.number} | {item.name} | {kind} | {_cell(about)} |"
    if message.field:
        yield ""
    if message.reserved_range:
        spans = [
            str(span.start) if span.end == span.start + 1 else f"{span.start} to {span.end - 1}"
            for span in message.reserved_range
        ]
        yield from (f"Reserved: {', '.join(spans)}.", "")


def _type(item: _Kind) -> str:
    if item.type in SCALARS:
        return SCALARS[item.type]
    name = item.type_name.rsplit(".", 1)[-1]
    return f"[{name}](#{name.lower()})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
