"""From YAML to invariants: shapes, folds and checks over declared streams of events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import GuardType, Scope, present_after, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.invariant import (
    PLACEHOLDER,
    CheckSpec,
    EventStream,
    FoldStepSpec,
    InvariantSpec,
    OtherwiseSpec,
    Pairing,
    StreamEventSpec,
)
from replispec.compiler.model.machine import MachineSpec, VariableSpec
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, INT32, Type, parse_type
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.machines import guard_types
from replispec.compiler.read.yaml_source import Scalar, Tree

_ID: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
STREAMS_END: Final = "streams.yaml"
"""How a file is called that declares streams; the others hold invariants."""
_Present = frozenset[ex.Expression]
_COMMON: Final = ("id", "about", "shape", "stream", "group", "key", "evaluated", "says", "unseen", "clause")
_SHAPES: Final = {
    "set": ("event", "where", "value", "otherwise"),
    "order": ("variables", "steps"),
    "pairing": ("request", "one_way", "answer", "steps"),
    "as_of": ("event", "where", "variables", "steps", "check", "otherwise"),
}
_PAIRING_VARIABLES: Final = {"waiting": INT32, "answered": INT32, "one_way": BOOL}


def read_streams(tree: Tree, model: Model) -> dict[str, EventStream]:
    """The streams of events that invariants may speak about."""
    tree.only("streams")
    streams = {}
    for name, stream in tree.trees("streams"):
        with attempt(name):
            stream.only("about", "order", "events")
            events = {}
            for kind, fields in stream.trees("events"):
                types, origins = {}, {}
                for each, field in fields.entries():
                    field.only("type", "from")
                    types[each] = parse_type(field.text("type"), model, field.place)
                    origins[each] = field.text("from")
                events[kind] = StreamEventSpec(kind, types, origins)
            streams[name] = EventStream(
                name, stream.text("about"), stream.text("order"), events, stream.place
            )
    return streams


def read_invariants(
    tree: Tree,
    model: Model,
    streams: Mapping[str, EventStream],
    rules: Mapping[str, RuleType],
    machines: Mapping[str, MachineSpec],
) -> Iterator[InvariantSpec]:
    """The invariants of one file. Raises SpecificationError with the line of the first fault."""
    guards = {
        (machine.name, name): kind
        for machine in machines.values()
        for name, kind in guard_types(machine).items()
    }
    tree.only("invariants")
    for item in tree.listed("invariants"):
        with attempt():
            yield _Reader(item, model, streams, rules, guards).invariant()


class _Reader:
    def __init__(
        self,
        tree: Tree,
        model: Model,
        streams: Mapping[str, EventStream],
        rules: Mapping[str, RuleType],
        guards: Mapping[tuple[str, str], GuardType],
    ) -> None:
        self._tree = tree
        self._model = model
        self._streams = streams
        self._scope = Scope(model, rules=rules, guards=guards, may_miss=True)

    def invariant(self) -> InvariantSpec:
        tree = self._tree
        shape = tree.text("shape")
        if shape not in _SHAPES:
            raise SpecificationError(
                tree.place_of("shape"), f"{shape!r} is no shape", f"use {', '.join(_SHAPES)}"
            )
        tree.only(*_COMMON, *_SHAPES[shape])
        name = tree.text("id")
        if not _ID.fullmatch(name):
            raise SpecificationError(tree.place, f"{name!r} is no id", "write lower case words joined by -")
        if tree.text("stream") not in self._streams:
            raise SpecificationError(
                tree.place_of("stream"),
                f"no stream is named {tree.text('stream')!r}",
                f"streams: {', '.join(self._streams)}",
            )
        invariant = InvariantSpec(
            id=name,
            about=tree.text("about"),
            shape=shape,
            stream=self._streams[tree.text("stream")],
            group=tree.texts("group"),
            key=tree.texts("key"),
            evaluated=tree.text("evaluated"),
            says=tree.text("says"),
            clauses=tree.texts("clause"),
            place=tree.place,
            unseen=tree.text("unseen", ""),
        )
        if not invariant.group:
            raise SpecificationError(
                tree.place, f"{name} has no group", "name the fields that a finding is about"
            )
        for field in (*invariant.group, *invariant.key):
            self._check_field(field, invariant)
        return self._with_shape(invariant)

    def _check_field(self, name: str, invariant: InvariantSpec) -> None:
        """A field of a key must exist, with one type, in every event of the stream."""
        kinds = {event.fields.get(name) for event in invariant.stream.events.values()}
        if len(kinds) != 1 or None in kinds:
            raise SpecificationError(
                invariant.place,
                f"not every event of {invariant.stream.name} has the field {name!r}",
                "key by common fields",
            )

    def _with_shape(self, invariant: InvariantSpec) -> InvariantSpec:
        tree = self._tree
        if invariant.shape == "set":
            event, scope = self._event(tree, invariant, {})
            value = ex.parse(tree.text("value"), tree.place_of("value"))
            where = self._where(tree, scope)
            type_of(
                value,
                scope,
                tree.place_of("value"),
                frozenset() if where is None else present_after(where, when=True),
            )
            compared = replace(scope, other=True)
            otherwise = self._otherwise(tree, compared)
            self._check_text(invariant.says, compared, tree.place_of("says"))
            return replace(invariant, event=event.name, where=where, value=value, otherwise=otherwise)
        variables = {each.name: each for each in self._variables()}
        types = {name: each.type for name, each in variables.items()}
        if invariant.shape == "pairing":
            names = {
                key: self._event_named(tree.text(key), invariant, tree.place_of(key))
                for key in _SHAPES["pairing"][:3]
            }
            invariant = replace(invariant, pairing=Pairing(**{key: each.name for key, each in names.items()}))
            types = dict(_PAIRING_VARIABLES)
        invariant = replace(invariant, variables=variables)
        earlier: dict[str, _Present] = {}
        steps = tuple(self._step(item, invariant, types, earlier) for item in tree.listed("steps"))
        invariant = replace(invariant, steps=steps)
        if invariant.shape == "as_of":
            return self._with_end(invariant, types)
        if not any(step.checks for step in steps):
            raise SpecificationError(tree.place, f"{invariant.id} checks nothing", "give a step a check:")
        return invariant

    def _with_end(self, invariant: InvariantSpec, types: Mapping[str, Type]) -> InvariantSpec:
        tree = self._tree
        event, scope = self._event(tree, invariant, types)
        check = self._check(tree.text("check"), tree, scope, tree.place_of("check"), "")
        self._check_text(invariant.says, scope, tree.place_of("says"))
        return replace(invariant, event=event.name, where=self._where(tree, scope), check=check)

    def _event_named(self, name: str, invariant: InvariantSpec, place: Place) -> StreamEventSpec:
        events = invariant.stream.events
        if name not in events:
            raise SpecificationError(
                place, f"{invariant.stream.name} has no event {name!r}", f"events: {', '.join(events)}"
            )
        return events[name]

    def _event(
        self, tree: Tree, invariant: InvariantSpec, variables: Mapping[str, Type]
    ) -> tuple[StreamEventSpec, Scope]:
        event = self._event_named(tree.text("event"), invariant, tree.place_of("event"))
        return event, replace(self._scope, variables=variables, event=event.fields, event_name=event.name)

    def _condition(
        self, tree: Tree, key: str, scope: Scope, present: _Present = frozenset()
    ) -> ex.Expression | None:
        if key not in tree.items:
            return None
        place = tree.place_of(key)
        node = ex.parse(tree.text(key), place)
        require(node, BOOL, scope, place, f"{tree.text(key)!r}", present)
        return node

    def _where(self, tree: Tree, scope: Scope) -> ex.Expression | None:
        return self._condition(tree, "where", replace(scope, variables={}))

    def _variables(self) -> Iterator[VariableSpec]:
        variables = self._tree.tree("variables")
        for name, node in variables.items.items():
            place = variables.place_of(name)
            if isinstance(node, Scalar):
                yield VariableSpec(name, parse_type(node.text, self._model, place), "", place)
                continue
            tree = variables.tree(name)
            tree.only("type", "about", "initial")
            kind = parse_type(tree.text("type"), self._model, place)
            initial = None
            if "initial" in tree.items:
                initial = ex.parse(tree.text("initial"), place)
                require(initial, kind, self._scope, place, f"the start of {name}")
            yield VariableSpec(name, kind, tree.text("about", ""), place, initial)

    def _step(
        self,
        tree: Tree,
        invariant: InvariantSpec,
        types: Mapping[str, Type],
        earlier: dict[str, _Present],
    ) -> FoldStepSpec:
        """One step. `earlier` holds per event what is present because earlier steps were not taken."""
        tree.only("event", "if", "check", "checks", "otherwise", "assign")
        event, scope = self._event(tree, invariant, types)
        present = earlier.get(event.name, frozenset())
        condition = self._condition(tree, "if", scope, present)
        if condition is not None:
            earlier[event.name] = present | present_after(condition, when=False)
            present |= present_after(condition, when=True)
        checks = []
        if "check" in tree.items:
            checks.append(self._check(tree.text("check"), tree, scope, tree.place_of("check"), "", present))
            self._check_text(invariant.says, scope, self._tree.place_of("says"))
        for item in tree.listed("checks"):
            item.only("holds", "says", "otherwise")
            checks.append(
                self._check(
                    item.text("holds"), item, scope, item.place_of("holds"), item.text("says"), present
                )
            )
        assign = tree.tree("assign")
        values = {}
        for name in assign.items:
            place = assign.place_of(name)
            if name not in invariant.variables:
                raise SpecificationError(
                    place, f"no variable is named {name!r}", f"variables: {', '.join(invariant.variables)}"
                )
            values[name] = ex.parse(assign.text(name), place)
            require(
                values[name],
                invariant.variables[name].type,
                scope,
                place,
                f"the new value of {name}",
                present,
            )
        return FoldStepSpec(event.name, condition, tuple(checks), values, tree.place)

    def _check(
        self, text: str, tree: Tree, scope: Scope, place: Place, says: str, present: _Present = frozenset()
    ) -> CheckSpec:
        node = ex.parse(text, place)
        require(node, BOOL, scope, place, f"{text!r}", present)
        self._check_text(says, scope, place)
        return CheckSpec(node, self._otherwise(tree, scope, present), says, place)

    def _otherwise(
        self, tree: Tree, scope: Scope, present: _Present = frozenset()
    ) -> tuple[OtherwiseSpec, ...]:
        found = []
        for item in tree.listed("otherwise"):
            item.only("if", "verdict", "divergence", "says")
            verdict, divergence, says = item.text("verdict"), item.tree("divergence"), item.text("says", "")
            if verdict not in ("violated", "diverged", "unknown", "ok"):
                raise SpecificationError(
                    item.place, f"{verdict!r} is no verdict", "use violated, diverged, unknown or ok"
                )
            if (verdict == "diverged") != bool(divergence.items):
                raise SpecificationError(
                    item.place, "diverged and divergence belong together", "say who diverges, and how"
                )
            for versions in divergence.items:
                parse_versions(versions, divergence.place_of(versions))
            self._check_text(says, scope, item.place_of("says"))
            words = "; ".join(f"{versions}: {divergence.text(versions)}" for versions in divergence.items)
            found.append(
                OtherwiseSpec(verdict, self._condition(item, "if", scope, present), words, says, item.place)
            )
        for entry in found[:-1]:
            if entry.condition is None:
                raise SpecificationError(
                    entry.place, "an unguarded entry of otherwise is not the last", "put it last"
                )
        return tuple(found)

    def _check_text(self, says: str, scope: Scope, place: Place) -> None:
        """Refuse placeholders of a sentence that name nothing."""
        rest = PLACEHOLDER.sub("", says)
        if "{" in rest or "}" in rest:
            raise SpecificationError(
                place, f"{says!r} has a brace outside {{name}}", "write {variable} or {event.field}"
            )
        for match in PLACEHOLDER.finditer(says):
            of, name = match["of"], match["name"]
            known = scope.variables if of is None else (scope.event or {})
            if name not in known or (of == "other" and not scope.other):
                raise SpecificationError(
                    place, f"{match[0]} names nothing", f"known: {', '.join(sorted(known))}"
                )
