"""Every name of the specification with what there is to say of it, for `replispec explain`.

One JSON array, one object a line, followed by its parts: `family`, `kind`, `id`, `place` (a file of
spec/), `about`, `also` (other names: keys on the wire, codes, what is configured), `says` (its attributes
in words), `clauses` (what
demands it), `findings` (what judges of traffic find that rests on it), `part_of` (the object that holds it).
What is empty, and clauses and findings that are those of the object above, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from replispec.compiler.evolution.touched import clauses_of, findings_of
from replispec.compiler.evolution.walk import SpecNode, shown

# What has a name that nobody meets outside of its own file, or none.
_UNNAMED: Final = (
    *("edge", "vector", "example", "paragraph", "document", "otherwise", "check", "step", "given number"),
    *("source", "answer", "record", "refusal", "own field", "own value", "family", "group of parameters"),
)
# Facts under which an object is known, too.
_ALSO: Final = {
    "field": ("key",),
    "value": ("wire_name", "number"),
    "message": ("codes",),
    "event": ("timer",),
    "machine": ("finding",),
    "parameter": ("aliases",),
}
_NOT_SAID: Final = ("about", "clauses", "module", "is_message", "is_enum", "requirement")
# What messages themselves take, without an act.
_OF_MESSAGES: Final = {
    "lost": "Messages that do not arrive.",
    "late": "Messages that arrive too late for an answer.",
}
_NOTHING: Final = ("none", "false", "0")
_SAID_MAX: Final = 300


def names_json(families: Mapping[str, SpecNode]) -> bytes:
    """The whole file, in the order of families and their sources."""
    entries = [entry for name, root in families.items() for entry in _entries(name, root)]
    parts: list[str] = []
    for entry in entries:
        before = "" if not parts else ", " if "part_of" in entry else ",\n"
        parts.append(before + json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return f"[\n{''.join(parts)}\n]\n".encode()


def _entries(family: str, root: SpecNode) -> Iterator[dict[str, Any]]:
    for node in root.below():
        if node.kind not in _UNNAMED:
            yield _entry(family, node)
            if node.kind == "machine":
                yield from _effects(family, node)
            if node.kind == "system":
                yield from _budgets(family, node)


def _entry(family: str, node: SpecNode) -> dict[str, Any]:
    holder = node.parent if node.parent is not None and node.parent.kind not in _UNNAMED else None
    about = node.facts.get("about") or node.facts.get("requirement") or _tolerated(node)
    found: dict[str, Any] = {
        "family": family,
        "kind": node.kind,
        "id": node.id,
        "place": f"spec/{node.place.file}",
        "about": str(about),
        "also": list(dict.fromkeys(_also(node))),
        "says": _said(node),
        "clauses": _own(clauses_of, node, holder) if node.kind != "clause" else [],
        "findings": _own(findings_of, node, holder),
        "part_of": holder.id if holder is not None else "",
    }
    return {name: value for name, value in found.items() if value}


def _tolerated(node: SpecNode) -> str:
    """What the edges of an overlay are tolerated for."""
    said = (str(each.facts.get("tolerated", "")) for each in node.below() if each.kind == "edge")
    return "; ".join(dict.fromkeys(filter(None, said)))


def _own(asked: Callable[[SpecNode], Iterator[str]], node: SpecNode, holder: SpecNode | None) -> list[str]:
    """What is asked of the object; nothing when the object above it has the same."""
    found = sorted(set(asked(node)))
    return [] if holder is not None and found == sorted(set(asked(holder))) else found


def _also(node: SpecNode) -> Iterator[str]:
    for name in _ALSO.get(node.kind, ()):
        value = node.facts.get(name, ())
        for each in value if isinstance(value, tuple) else (value,):
            if str(each) not in ("", node.name):
                yield str(each)


def _said(node: SpecNode) -> dict[str, str]:
    said = {name: shown(value) for name, value in node.facts.items() if name not in _NOT_SAID}
    return {name: value[:_SAID_MAX] for name, value in said.items() if value not in _NOTHING}


def _effects(family: str, machine: SpecNode) -> Iterator[dict[str, Any]]:
    """What the machine does, each with the edges that do it."""
    edges: dict[str, list[SpecNode]] = {}
    for node in machine.below():
        if node.kind == "edge":
            for name in node.facts.get("do", ()):
                edges.setdefault(name, []).append(node)
    for name, doing in edges.items():
        code = machine.facts.get(f"answers.{name}")
        yield {
            "family": family,
            "kind": "effect",
            "id": f"{machine.id}.{name}",
            "place": f"spec/{machine.place.file}",
            "about": f"{machine.id} does it: {'; '.join(dict.fromkeys(edge.name for edge in doing))}.",
            "clauses": sorted({clause for edge in doing for clause in edge.facts.get("clauses", ())}),
            "part_of": machine.id,
            "says": {"answers with": shown(code)} if code else {},
        }


def _budgets(family: str, system: SpecNode) -> Iterator[dict[str, Any]]:
    """How often what may happen in a system, each with the acts that take from it."""
    acts = [node for node in system.below() if node.kind == "act"]
    for fact, most in system.facts.items():
        whole, _, name = fact.partition(".")
        if whole != "budgets" or not name:
            continue
        said = [f"{act.name}: {act.facts['about']}" for act in acts if act.facts.get("budget") == name]
        if name in _OF_MESSAGES:
            said.append(_OF_MESSAGES[name])
        yield {
            "family": family,
            "kind": "budget",
            "id": f"{system.id}.{name}",
            "place": f"spec/{system.place.file}",
            "about": " ".join(said),
            "says": {
                "at most": str(most),
                "another number": f"replispec spec explore {system.id} --set {name}=NUMBER",
            },
            "part_of": system.id,
        }
