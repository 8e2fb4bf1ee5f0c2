"""Every single edit of a specification that should not go unnoticed.

Edges, guards, effects, timers and events of machines, what binds them to messages, answers and records,
options of bytes, defaults of parameters.

The edits are found in the sources themselves, so their number follows the specification. Each changes one
thing and leaves the rest as it is; whether the compiler accepts the result is not looked at here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from lab import families
from lab.binding_edits import Change, Document, binding_changes

# Options that change bytes, with what each becomes. What only documents (clauses, units) is left alone.
_OPTIONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"\bsize: (\d+)", lambda old: str({2: 4, 4: 8, 8: 4}.get(int(old), int(old) + 1))),
    (r"\bequals: (\d+)", lambda old: str(int(old) + 1)),
    (r"\bcode: (\d+)", lambda old: str(int(old) + 9000)),
    (r"\bmaximum: (\d+)", lambda old: str(int(old) // 2)),
    (r"\bminimum: (\d+)", lambda old: str(int(old) + 1)),
    (r"\bprefix: (\d+)", lambda old: str(int(old) // 2)),
    (r"\bunquoted_keys: (true)", lambda _: "false"),
    (r"\bdefault: (\d+)", lambda old: str(int(old) + 1)),
    (r'\bkey: "(\w+)"', lambda old: old + "X"),
    (r'\border: "(HASH_16|ALPHABETICAL)"', lambda old: "ALPHABETICAL" if old == "HASH_16" else "DECLARED"),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file below spec/: `kind` is what is edited, `written` makes the file's whole text."""

    kind: str
    name: str
    path: Path
    written: Callable[[], str]

    @property
    def text(self) -> str:
        """The file's whole new content: of thousands of edits only few are asked for it."""
        return self.written()


def edits(spec: Path) -> Sequence[Edit]:
    """All edits of the families of a specification, in the order of its sources; names are unique."""
    return tuple(edit for family in families.with_part("edited") for edit in _edits_of(spec, family))


def _edits_of(spec: Path, family: str) -> Iterator[Edit]:
    edited = families.in_the_lab(family).edited
    assert edited is not None, "it is one of those that have edits"
    machines = spec / "statemachines" / family
    for machine in edited.machines:
        yield from _edited(machines / f"{machine}.yaml", _machine_changes)
    for machine in edited.bound:
        bound = partial(binding_changes, other_releases=edited.other_releases)
        yield from _edited(machines / f"{machine}.yaml", bound)
    for name in edited.messages:
        yield from _option_edits(spec / "proto" / "replispec" / family / "v1" / f"{name}.proto")
    yield from _default_edits(spec / "parameters" / family)


def _edited(path: Path, changes: Callable[[Document], Iterable[Change]]) -> Iterator[Edit]:
    document: Document = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
    for kind, name, change in changes(document):
        yield Edit(kind, f"{path.stem}: {name}", path, partial(_written, document, change))


def _written(document: Document, change: Callable[[Document], None]) -> str:
    """A document after a change; it stays as it is."""
    changed = copy.deepcopy(document)
    change(changed)
    return yaml.dump(changed, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=10_000)


def _machine_changes(document: Document) -> Iterator[Change]:
    yield from _edge_changes(document)
    yield from _guard_changes(document)
    yield from _event_changes(document)
    yield from _timer_changes(document)


def _edge_changes(document: Document) -> Iterator[Change]:
    entered = sorted({edge["to"] for edge in document["transitions"]} - {"same"})
    for number, edge in enumerate(document["transitions"]):
        guard = f" if {edge['if']}" if "if" in edge else ""
        name = f"edge {number} ({_list(edge['from'])} on {_list(edge['event'])}{guard})"
        yield "edge", f"{name} removed", _at(number, _removed)
        for other in entered:
            if other != edge["to"]:
                yield "edge", f"{name} leads to {other}", _at(number, _set("to", other))
        for effect in edge.get("do", ()):
            kind = "timer" if effect.startswith(("arm ", "cancel ")) else "effect"
            yield kind, f"{name} does not {effect}", _at(number, _without("do", effect))
        for variable in edge.get("assign", ()):
            yield (
                "assignment",
                f"{name} does not assign {variable}",
                _at(number, _without("assign", variable)),
            )
        if "if" in edge:
            yield "condition", f"{name} negated", _at(number, _set("if", f"not ({edge['if']})"))


def _guard_changes(document: Document) -> Iterator[Change]:
    for name, guard in document.get("guards", {}).items():
        yield "guard", f"guard {name} negated", _in("guards", name, "if", f"not ({guard['if']})")


def _event_changes(document: Document) -> Iterator[Change]:
    for name, event in document["events"].items():
        if "where" in event:
            change = _in("events", name, "where", f"not ({event['where']})")
            yield "event", f"event {name} means the others", change
    for name, variable in document.get("variables", {}).items():
        if "initial" in variable:
            yield (
                "variable",
                f"variable {name} begins elsewhere",
                _in("variables", name, "initial", variable["initial"] + 1),
            )


def _timer_changes(document: Document) -> Iterator[Change]:
    """A timer that repeats where it did not, or the reverse; which period it has is a default's edit."""
    for name, timer in document.get("timers", {}).items():
        other = not timer.get("periodic", False)
        what = f"timer {name} is {'periodic' if other else 'not periodic'}"
        yield "timer", what, _in("timers", name, "periodic", other)


def _at(number: int, change: Callable[[list[Document], int], None]) -> Callable[[Document], None]:
    return lambda document: change(document["transitions"], number)


def _removed(edges: list[Document], number: int) -> None:
    del edges[number]


def _set(key: str, value: object) -> Callable[[list[Document], int], None]:
    def change(edges: list[Document], number: int) -> None:
        edges[number][key] = value

    return change


def _without(key: str, item: str) -> Callable[[list[Document], int], None]:
    def change(edges: list[Document], number: int) -> None:
        held = edges[number][key]
        if isinstance(held, dict):
            del held[item]
        else:
            held.remove(item)
        if not held:
            del edges[number][key]

    return change


def _in(section: str, name: str, key: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document[section][name][key] = value

    return change


def _list(value: object) -> str:
    return "/".join(value) if isinstance(value, list) else str(value)


def _option_edits(path: Path) -> Iterator[Edit]:
    text = path.read_text("utf-8")
    for pattern, change in _OPTIONS:
        for found in re.finditer(pattern, text):
            line = text.count("\n", 0, found.start()) + 1
            changed = text[: found.start(1)] + change(found[1]) + text[found.end(1) :]
            yield Edit("option", f"{path.name}:{line}: {found[0]} changed", path, partial(str, changed))


def _default_edits(folder: Path) -> Iterator[Edit]:
    """Another default for every parameter that has a number, a duration, a truth value or a choice."""
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text("utf-8")
        document: Document = yaml.load(text, yaml.CSafeLoader)
        for name, parameter in document.get("parameters", {}).items():
            other = _other_default(parameter)
            if other is not None:
                what = f"{path.stem}: {name} is {other} by default"
                change = _in("parameters", name, "default", other)
                yield Edit("default", what, path, partial(_written, document, change))


def _other_default(parameter: Document) -> object:
    old = parameter.get("default")
    match parameter["type"]:
        case "flag":
            return not old
        case "duration":
            number, unit = str(old).split()
            return f"{int(number) * 10} {unit}"
        case "choice":
            return next(each for each in parameter["values"] if each != old)
        case "number" | "bytes":
            return parameter["minimum"] if old != parameter["minimum"] else parameter["maximum"]
    return None
