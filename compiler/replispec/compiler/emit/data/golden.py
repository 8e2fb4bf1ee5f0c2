"""A family's clauses and golden vectors as JSON, one entry a line, beside modules that load them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from replispec.compiler.model.clause import ClauseSpec
from replispec.compiler.model.example import Example
from replispec.compiler.model.rule import RuleSource


def clauses_json(
    clauses: Mapping[str, ClauseSpec], uses: Mapping[str, Sequence[str]], sources: Iterable[str]
) -> str:
    """The clauses by id, with where the specification checks each; what is empty is left out."""
    found = _object((name, _clause(each, uses.get(name, ()))) for name, each in clauses.items())
    return f'{{{_origin(sources)},\n"clauses": {found}}}\n'


def _origin(sources: Iterable[str]) -> str:
    """The entry that says where a file comes from."""
    names = ", ".join(f"spec/{name}" for name in sorted(sources))
    return f'"@generated": {_line(f"by `make generate` from {names}. Do not edit.")}'


def _clause(clause: ClauseSpec, uses: Sequence[str]) -> dict[str, object]:
    names = ("requirement", "severity", "basis", "document", "section", "case", "not_yet")
    found: dict[str, object] = {name: getattr(clause, name) for name in names}
    found |= {"divergence": dict(clause.divergence), "uses": list(uses)}
    return {name: value for name, value in found.items() if value}


def vectors_json(rules: Mapping[str, RuleSource], examples: Sequence[Example], sources: Iterable[str]) -> str:
    """Rules with their examples, and messages with their bytes, as plain values.

    A message is a mapping of its fields, what is absent is null, bytes are hexadecimal.
    """
    by_name = _object((rule.name, _rule(rule)) for rule in rules.values())
    lines = ",\n".join(_line(_example(each)) for each in examples)
    return f'{{{_origin(sources)},\n"rules": {by_name},\n"messages": [\n{lines}\n]}}\n'


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


def _example(example: Example) -> dict[str, object]:
    return {
        "name": example.name,
        "message": example.message,
        "given": dict(example.given),
        "clauses": list(example.clauses),
        "fields": _plain(example.values),
        "hex": example.data.hex(),
    }


def _plain(value: object) -> object:
    """Byte strings as hexadecimal, everywhere inside."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _object(entries: Iterable[tuple[str, Mapping[str, object]]]) -> str:
    """A JSON object with one entry a line."""
    lines = ",\n".join(f"{_line(name)}: {_line(value)}" for name, value in entries)
    return f"{{\n{lines}\n}}"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
