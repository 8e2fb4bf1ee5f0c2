"""Markdown tables of a family's messages and numbers."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.messages import describe_when
from replispec.compiler.model.layout import is_inner, is_last_number, is_text_list
from replispec.compiler.model.message import AFTER, Field, Message, Model

_NOTE = "<!-- made by `make generate`; change the specification, not this page -->"
_WORDS = {"HEADER_FIELDS": "header fields", "BINARY": "binary", "JSON": "JSON", "TEXT": "text"}


def messages_markdown(model: Model, module: str) -> str:
    """One page: every message of a module with a table of its fields."""
    lines = [_NOTE, "", f"# {model.family}: {module}", ""]
    for message in model.messages.values():
        if message.module == module:
            lines += _message(message)
    return "\n".join(lines).rstrip() + "\n"


def _message(message: Message) -> Iterator[str]:
    yield f"## {message.name}"
    if message.about:
        yield _cell(message.about)
    facts = [f"Layout: {_WORDS[message.layout]}" + (f" and {_WORDS[message.also]}" if message.also else "")]
    if message.codes:
        facts.append(f"code {', '.join(map(str, message.codes))} ({message.kind.lower()})")
    if message.sender:
        facts.append(f"{_party(message.sender)} to {_party(message.receiver)}")
    if message.streams:
        facts.append(f"stream {', '.join(message.streams)}")
        facts[-1] += ", the first frame of a connection" if message.opens else ""
    if message.bodies:
        facts.append(f"body {', '.join(f'[{name}](#{name.lower()})' for name in message.bodies)}")
    if message.number is not None:
        facts.append(f"number {message.number}")
    if message.answers:
        facts.append(f"answers to {message.answers.frame}")
    facts += [f"{given.name} {given.first} to {given.last}" for given in message.given]
    if message.versions:
        facts.append(f"releases {message.versions}")
    if message.clauses:
        facts.append(f"clauses {', '.join(message.clauses)}")
    yield "; ".join(facts) + "."
    yield ""
    if message.fields:
        yield from _fields(message)
        yield ""


def _fields(message: Message) -> Iterator[str]:
    if message.layout == "BINARY":
        yield "| field | bytes | type | releases | clauses | meaning |"
        yield "| --- | --- | --- | --- | --- | --- |"
    else:
        yield "| key | field | type | releases | clauses | meaning |"
        yield "| --- | --- | --- | --- | --- | --- |"
    for field in message.fields:
        versions = str(field.versions) if field.versions else ""
        clauses = ", ".join(field.clauses)
        about = _cell(" ".join(filter(None, (field.about, _limits(field)))))
        first = (field.name, _bytes(field)) if message.layout == "BINARY" else (f"`{field.key}`", field.name)
        yield f"| {first[0]} | {first[1]} | {_type(field)} | {versions} | {clauses} | {about} |"


def _type(field: Field) -> str:
    kind = f"map of {field.map_key} to {field.map_value}" if field.type == "map" else field.type
    text = f"list of {kind}" if field.repeated else kind
    return f"{text}, may be absent" if field.optional else text


def _bytes(field: Field) -> str:
    if field.json_only:
        return "none (JSON only)"
    if field.length:
        return "the rest" if field.length == "rest" else field.length
    if field.until:
        return f"elements, then [{field.until}](#{field.until.lower()})"
    if is_inner(field):
        return "as it is"
    if is_text_list(field):
        return f"{field.count} (number), each {field.prefix} (length), content"
    if field.zigzag:
        return _zigzag(field)
    if field.count:
        elements = f"{field.size} each" if field.size else "elements"
        return f"{field.count} (number), {elements}"
    size = f"{field.prefix} (length), content" if field.prefix else str(field.size)
    if field.wider:
        wider = field.wider
        size += f"; {wider.size} when {wider.field} & {wider.mask:#x} = {wider.equals:#x}"
    return size


def _zigzag(field: Field) -> str:
    """A number of as many bytes as it needs, or one of these before the field."""
    if field.count:
        return "zigzag (number), elements"
    return "zigzag (length), content" if field.prefix else f"zigzag, at most {field.size} bytes of number"


def _limits(field: Field) -> str:
    limits = []
    if field.equals is not None:
        limits.append(f"Always {field.equals}.")
    elif field.minimum is not None or field.maximum is not None:
        low, high = ("" if bound is None else str(bound) for bound in (field.minimum, field.maximum))
        limits.append(f"Range {low}..{high}.")
    if field.among:
        limits.append(f"One of {', '.join(map(str, field.among))}.")
    if is_last_number(field):
        limits.append("Absent where the bytes end before it.")
    if field.nullable:
        limits.append("A length or number of -1: there is none.")
    if field.distinct:
        limits.append("No two elements agree in what identifies them.")
    if field.identifies:
        limits.append("Identifies the element.")
    if field.when:
        limits.append(f"There when {describe_when(field.when)}.")
    if field.unit:
        limits.append(f"Unit: {field.unit.lower().replace('_', ' ')}.")
    if field.checksum:
        over = "all bytes after it" if field.checksum.over == AFTER else field.checksum.over
        kind = field.checksum.kind.replace("_", "-")
        limits.append(f"{kind} of {over}, masked with {field.checksum.mask:#x}.")
    if field.enum:
        limits.append(f"Values: {field.enum}.")
    return " ".join(limits)


def numbers_markdown(model: Model) -> str:
    """One page: every enum with numbers, names and releases."""
    lines = [_NOTE, "", f"# {model.family}: numbers", ""]
    for enum in model.enums.values():
        lines += [
            f"## {enum.name}",
            _cell(enum.about),
            "",
            "| number | name | releases | meaning |",
            "| --- | --- | --- | --- |",
        ]
        for value in sorted(enum.values, key=lambda value: value.number):
            versions = str(value.versions) if value.versions else ""
            lines.append(f"| {value.number} | {value.wire_name} | {versions} | {_cell(value.about)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _party(name: str) -> str:
    return name.lower().replace("_", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
