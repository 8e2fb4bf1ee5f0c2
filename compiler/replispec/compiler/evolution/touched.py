"""What speaks of a changed object: clauses, cases of the suite, documents, expectations of captures.

Cases and expectations are read as text with names, by no room's code: the compiler imports none, and a
revision of long ago is asked with its own files. A folder that holds only a specification has none of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import yaml

from replispec.compiler.evolution.judge import Change
from replispec.compiler.evolution.walk import SpecNode, shown
from replispec.compiler.model.expressions import Expression

_CASES: Final = Path("conformance/cases")
_EXPECTED: Final = Path("spark_replay/captures/expected")
_WRITTEN: Final = Path("docs")
_OWN: Final = ("own message", "own field", "own enum", "own value")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RUN: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Touched:
    """Names of clauses and cases, and files relative to the project, all sorted."""

    clauses: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    captures: tuple[str, ...] = ()


@dataclass(slots=True)
class _Case:
    clause: str
    words: set[str] = field(default_factory=set)


class Project:
    """The files beside a specification that speak of it; `root` is the folder that holds spec/, or None."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    @cached_property
    def cases(self) -> Mapping[str, _Case]:
        """Every case by id, with all words that it and what is given to it say."""
        if self._root is None:
            return {}
        paths = sorted((self._root / _CASES).rglob("*.yaml"))
        return {identity: case for path in paths for identity, case in _cases(path)}

    @cached_property
    def expectations(self) -> Mapping[str, frozenset[str]]:
        """For each file of expectations, the findings of which it expects evaluations."""
        if self._root is None:
            return {}
        return {
            path.relative_to(self._root).as_posix(): frozenset(_expected(json.loads(path.read_bytes())))
            for path in sorted((self._root / _EXPECTED).glob("*.json"))
        }

    @cached_property
    def pages(self) -> Mapping[str, frozenset[str]]:
        """For each document that people write, its words."""
        if self._root is None:
            return {}
        paths = sorted((self._root / _WRITTEN).glob("*.md"))
        return {
            path.relative_to(self._root).as_posix(): frozenset(_WORD.findall(path.read_text("utf-8")))
            for path in paths
        }

    def touched(self, change: Change, family: str) -> Touched:
        """What speaks of the changed object."""
        node = change.difference.node
        clauses = {
            name for each in (change.difference.old, change.difference.new) for name in clauses_of(each)
        }
        findings = set(findings_of(node))
        cases = {name for name, case in self.cases.items() if case.clause in clauses or _speaks(case, node)}
        own = {
            each.name
            for each in node.up()
            if each.kind in ("message", "machine", "rule", "invariant", "clause")
        }
        written = {page for page, words in self.pages.items() if own & words}
        captures = {path for path, expected in self.expectations.items() if findings & expected}
        pages = {f"generated/docs/{page}" for page in _generated(node, family)}
        return Touched(*(tuple(sorted(each)) for each in (clauses, cases, pages | written, captures)))


def _cases(path: Path) -> Iterator[tuple[str, _Case]]:
    """The cases of one file. Tags of the suite's language are no matter: only words are read."""
    given = {key: _words(value) for key, value in _entries(_root(path.with_name("given.yaml")))}
    for key, value in _entries(_root(path)):
        if key != "cases" or not isinstance(value, yaml.SequenceNode):
            continue
        for item in value.value:
            entries = dict(_entries(item))
            identity = getattr(entries.get("id"), "value", "")
            words = set(_words(item))
            for name in _words(entries.get("given")):
                words |= set(given.get(name, ()))
            parts = identity.split("/")
            clause = parts[-2] if len(parts) > 2 else ""
            yield identity, _Case(clause, words)


def _root(path: Path) -> yaml.Node | None:
    if not path.is_file():
        return None
    try:
        node: yaml.Node | None = yaml.compose(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None  # the suite refuses it with its place; a comparison names what can be read
    return node


def _entries(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), value


def _words(node: yaml.Node | None) -> tuple[str, ...]:
    if isinstance(node, yaml.MappingNode):
        return tuple(word for pair in node.value for each in pair for word in _words(each))
    if isinstance(node, yaml.SequenceNode):
        return tuple(word for each in node.value for word in _words(each))
    return (str(node.value),) if node is not None else ()


def _expected(value: object) -> Iterator[str]:
    """The names of findings with at least one evaluation."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict) and item.get("evaluated"):
                yield key
            yield from _expected(item)


def clauses_of(node: SpecNode | None) -> Iterator[str]:
    """The clauses of the object, or of the nearest object above it that has some, or the clause itself."""
    for each in node.up() if node is not None else ():
        if each.kind == "clause":
            yield each.name
            return
        cited = each.facts.get("clauses")
        if cited:
            yield from cited
            return


def _message(node: SpecNode) -> SpecNode | None:
    return next((each for each in node.up() if each.kind == "message"), None)


def _speaks(case: _Case, node: SpecNode) -> bool:
    """True when the case sends or expects the message, and where a field has changed, names it."""
    message = _message(node)
    if node.kind == "value":
        return bool({node.name, str(node.facts.get("wire_name"))} & case.words)
    if message is None:
        return False
    if not _aliases(message) & case.words:
        return False
    return node is message or bool({node.name, str(node.facts.get("key"))} & case.words)


def _aliases(message: SpecNode) -> set[str]:
    """Every name by which a case may speak of a message: its own, its commands', those of its users."""
    root = message.root
    found, names, waiting = set[str](), set[str](), [message]
    messages = root.children.get("messages", {})
    while waiting:
        each = waiting.pop()
        if each.name in names:
            continue
        names.add(each.name)
        found |= {each.name, *_commands(root, each.facts.get("codes", ()))}
        waiting += [other for other in messages.values() if _uses(other, each.name)]
    return found


def _uses(message: SpecNode, name: str) -> bool:
    fields = message.children.get("fields", {}).values()
    return name in message.facts.get("bodies", ()) or any(field.facts.get("type") == name for field in fields)


def _commands(root: SpecNode, codes: Iterable[int]) -> Iterator[str]:
    wanted = set(codes)
    for enum in root.children.get("enums", {}).values():
        if enum.facts.get("codes"):
            for value in enum.children.get("values", {}).values():
                if value.facts.get("number") in wanted:
                    yield from (value.name, str(value.facts.get("wire_name")))


def findings_of(node: SpecNode) -> Iterator[str]:
    """What judges of traffic find that rests on the object."""
    for each in node.up():
        if each.kind == "invariant":
            yield each.name
        elif each.kind == "machine" and each.facts.get("finding"):
            yield str(each.facts["finding"])
        elif each.kind in ("message", "rule", "stream"):
            yield from _resting(each)


def _resting(node: SpecNode) -> Iterator[str]:
    """The machines and invariants that mention a message, a rule or a stream of events."""
    root = node.root
    if root not in _SPEAKERS:
        _SPEAKERS[root] = _Speakers(root)
    speakers = _SPEAKERS[root]
    streams = {name for name, said in speakers.streams.items() if said.mentions(node.name)}
    for name, (stream, said) in speakers.invariants.items():
        if stream in streams or said.mentions(node.name):
            yield name
    for finding, said in speakers.machines:
        if said.mentions(node.name):
            yield finding


class _Said:
    """What an object and all that is below it say, in facts of these types."""

    def __init__(self, node: SpecNode, *types: type) -> None:
        facts = (value for each in node.below() for value in each.facts.values())
        self._text = "\n".join(shown(value) for value in facts if isinstance(value, types))
        self._words = frozenset(_RUN.findall(self._text))

    def mentions(self, name: str) -> bool:
        """Whether the name stands there as a word, or as several."""
        if _RUN.fullmatch(name):
            return name in self._words
        return re.search(rf"\b{re.escape(name)}\b", self._text) is not None


class _Speakers:
    """What may mention an object of a family: read once, for all of its objects are asked about."""

    def __init__(self, root: SpecNode) -> None:
        own, types = root.children.get, (Expression, str, tuple)
        self.streams = {name: _Said(each, object) for name, each in own("streams", {}).items()}
        self.invariants = {
            name: (each.facts.get("stream"), _Said(each, *types))
            for name, each in own("invariants", {}).items()
        }
        self.machines = [
            (str(each.facts["finding"]), _Said(each, *types))
            for each in own("machines", {}).values()
            if each.facts.get("finding")
        ]


_SPEAKERS: Final[WeakKeyDictionary[SpecNode, _Speakers]] = WeakKeyDictionary()


_PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "enum": ("numbers",),
    "rule": ("rules",),
    "example": ("examples",),
    "invariant": ("invariants",),
    "stream": ("invariants",),
    "clause": ("clauses", "compliance"),
    "document": ("compliance",),
}


def _generated(node: SpecNode, family: str) -> Iterator[str]:
    """The generated pages, relative to generated/docs, that show the object."""
    for each in node.up():
        if each.kind in _OWN:
            yield f"{family}.md"
        elif each.kind == "message":
            yield f"{family}/messages/{each.facts.get('module')}.md"
            if each.facts.get("codes"):
                yield f"{family}/numbers.md"
        elif each.kind == "machine":
            yield f"{family}/machines/{each.name}.md"
        else:
            yield from (f"{family}/{page}.md" for page in _PAGES.get(each.kind, ()))
