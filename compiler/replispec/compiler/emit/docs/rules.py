"""The Markdown page of rules with their examples."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table_row
from replispec.compiler.model.rule import RuleSource


def rules_document(rules: Mapping[str, RuleSource], sources: Mapping[str, bytes]) -> str:
    """The Markdown page of all algorithms with their examples."""
    lines = [*banner(sources), "# Rules", ""]
    lines += [
        "Pure algorithms that guards and checks call. The examples decide what an implementation returns.",
        "",
    ]
    for name, rule in rules.items():
        parameters = ", ".join(f"{each}: {kind}" for each, kind in rule.type.parameters.items())
        lines += [
            f"## {name}",
            f"`{name}({parameters}) -> {rule.type.result}`",
            "",
            rule.about,
            *([f"Clauses: {', '.join(rule.clauses)}."] if rule.clauses else []),
            "",
        ]
        head = ["example", *rule.type.parameters, "result"]
        lines += [table_row(head), table_row(["---"] * len(head))]
        for vector in rule.vectors:
            what = f"{vector.name}: {vector.about}" if vector.about else vector.name
            row = [what, *(_shown(each) for each in vector.arguments.values()), _shown(vector.result)]
            lines.append(table_row(row))
        lines.append("")
    return "\n".join(lines)


def _shown(value: object) -> str:
    """A plain value for a reader: a message as its values in parentheses, a map of numbers with its keys."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "(empty)"
    if isinstance(value, dict) and all(isinstance(key, int) for key in value):
        return ", ".join(f"{key}: {_shown(each)}" for key, each in value.items()) or "(empty)"
    if isinstance(value, dict):
        return f"({', '.join(map(_shown, value.values()))})"
    return str(value)
