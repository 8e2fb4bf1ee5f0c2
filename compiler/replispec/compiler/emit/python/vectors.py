"""The Python module of a family's golden vectors, as plain values that any language can be handed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.read.examples import Example
from replispec.compiler.read.rules import RuleSource


def vectors_text(
    rules: Mapping[str, RuleSource],
    examples: Sequence[Example],
    family: str,
    sources: Mapping[str, bytes],
) -> str:
    """The module, not yet formatted."""
    lines = [
        *certificate(sources),
        f'"""Golden vectors of {family}: rules with answers, messages with bytes, as plain values.',
        "",
        "A message is a mapping of its fields, what is absent is None, bytes are hexadecimal.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any",
        "",
        "RULES: dict[str, dict[str, Any]] = {",
        *(f"    {rule.name!r}: {_rule(rule)!r}," for rule in rules.values()),
        "}",
        "MESSAGES: list[dict[str, Any]] = [",
        *(f"    {line}," for line in _messages(examples)),
        "]",
    ]
    return "\n".join(lines) + "\n"


def _rule(rule: RuleSource) -> dict[str, object]:
    return {
        "about": rule.about,
        "clauses": list(rule.clauses),
        "parameters": {name: str(kind) for name, kind in rule.type.parameters.items()},
        "result": str(rule.type.result),
        "vectors": [
            {
                "name": vector.name,
                "about": vector.about,
                "given": dict(vector.arguments),
                "result": vector.result,
            }
            for vector in rule.vectors
        ],
    }


def _messages(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield repr(
            {
                "name": example.name,
                "message": example.message,
                "given": dict(example.given),
                "clauses": list(example.clauses),
                "fields": _plain(example.values),
                "hex": example.data.hex(),
            }
        )


def _plain(value: object) -> object:
    """Byte strings as hexadecimal, everywhere inside."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
