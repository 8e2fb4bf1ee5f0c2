"""From YAML to the records of events: what of a machine's log each event is, and that it fits in there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from replispec.compiler.language.check import Scope, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import ListForm, Mark, RecordForm, RecordLog, Source
from replispec.compiler.model.machine import Event, MachineSpec
from replispec.compiler.model.message import Message, Model, Place, SpecificationError
from replispec.compiler.model.record import RecordField, RecordMessage
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, STRING, Type, fields_of
from replispec.compiler.read.binding_parts import read_condition
from replispec.compiler.read.yaml_source import Scalar, Tree

_KEYS: Final = ("case", "fields", "derived", "marks")
_LIST_KEYS: Final = ("field", "each", "absent", "unless")
_HOLDS: Final = {
    "int32": ("int32", "int64"),
    "int64": ("int64",),
    "bool": ("bool",),
    "string": ("string",),
    "bytes": ("bytes",),
    "enum": ("int32", "int64"),
}
"""The kinds of a record's field that hold every value of a type."""


class RecordReader:
    """Reads the records of one machine."""

    def __init__(
        self,
        tree: Tree,
        machine: MachineSpec,
        model: Model,
        rules: Mapping[str, RuleType],
        sources: tuple[Source, ...],
    ) -> None:
        self._tree = tree
        self._machine = machine
        self._model = model
        self._rules = rules
        self._sources = sources
        self._variables = {name: each.type for name, each in machine.variables.items()}

    def log(self) -> RecordLog | None:
        """The message that all events are recorded in; None for a machine without a log."""
        if "log" not in self._tree.items:
            return None
        tree = self._tree.tree("log")
        tree.only("message", "cases", "instance", "fields")
        message = self._record(tree.text("message"), tree.place_of("message"))
        oneof, instance = tree.text("cases"), tree.text("instance")
        if oneof not in {each.oneof for each in message.fields.values()}:
            raise SpecificationError(
                tree.place_of("cases"),
                f"{message.name} has no oneof {oneof!r}",
                "name the oneof of its cases",
            )
        held = self._field(message, instance, tree.place_of("instance"))
        if held.oneof or not _holds(held, STRING):
            raise SpecificationError(
                tree.place_of("instance"),
                f"{message.name}.{instance} cannot hold the name of an instance",
                "name a field of type string",
            )
        fields = tree.tree("fields")
        found: dict[str, ex.Expression] = {}
        for name in fields.items:
            place = fields.place_of(name)
            if name == instance or self._field(message, name, place).oneof:
                raise SpecificationError(place, f"{message.name}.{name} is said already", "drop it")
            scope = Scope(self._model, variables=self._variables)
            found[name] = self._said(message, name, fields, scope)
        return RecordLog(message.name, oneof, instance, found)

    def records(self) -> dict[str, RecordForm]:
        """The record of every event that is remembered."""
        log = self.log()
        found: dict[str, RecordForm] = {}
        for name, tree in self._tree.trees("events"):
            if "record" not in tree.items:
                continue
            if log is None:
                raise SpecificationError(
                    tree.place_of("record"), f"{self._machine.name} has no log", "declare it by log:"
                )
            found[name] = self._form(self._machine.events[name], tree, log)
        return found

    def _form(self, event: Event, tree: Tree, log: RecordLog) -> RecordForm:
        place = tree.place_of("record")
        record = tree.tree("record") if isinstance(tree.items["record"], Tree) else Tree(place, {}, {})
        record.only(*_KEYS)
        case = record.text("case") if record.items else tree.text("record")
        around = self._model.records[log.message]
        field = around.fields.get(case)
        if field is None or field.oneof != log.oneof:
            cases = [each.name for each in around.fields.values() if each.oneof == log.oneof]
            raise SpecificationError(
                place, f"{log.message} has no case {case!r}", f"cases: {', '.join(cases)}; or add it there"
            )
        if field.kind != "message":
            raise SpecificationError(
                place, f"{log.message}.{case} is no message, and holds no fields", "make the case a message"
            )
        part = self._model.records[field.type_name]
        form = RecordForm(event.name, case, place, recalled=self._recalled(event))
        form = self._with_fields(form, event, record, part, around)
        form = replace(form, derived=self._derived(event, record, part))
        form = self._with_marks(form, event, record, part)
        _check_held_once(form, log)
        return form

    def _recalled(self, event: Event) -> dict[str, ex.Expression]:
        """The fields that the request does not say, but what is remembered and its other fields do."""
        found: dict[str, ex.Expression] = {}
        for source in self._sources:
            if source.event != event.name:
                continue
            for name, node in source.fields.items():
                parts = list(ex.walk(node))
                reads = any(isinstance(each, ex.Variable) for each in parts)
                is_said = any(isinstance(each, ex.SourceField) for each in parts)
                if reads and not is_said and all(_is_remembered(each) for each in parts):
                    found[name] = node
        return found

    def _with_fields(
        self, form: RecordForm, event: Event, tree: Tree, part: RecordMessage, around: RecordMessage
    ) -> RecordForm:
        """Where each field of the event is held; of the same name unless another one is given."""
        given = tree.tree("fields")
        for name in given.items:
            if name not in event.fields:
                raise SpecificationError(
                    given.place_of(name), f"{event.name} has no field {name!r}", "name one of its fields"
                )
        fields, outer, lists = {}, {}, {}
        for name, kind in event.fields.items():
            if name in form.recalled:
                continue
            place = given.place_of(name) if given.items else form.place
            nested = given.tree(name) if isinstance(given.items.get(name), Tree) else None
            target = nested.text("field") if nested else given.text(name, name)
            holder = part if target in part.fields or target not in around.fields else around
            field = self._field(holder, target, place, f"{event.name}.{name}")
            if nested is not None:
                lists[name] = self._list(nested, kind, field)
            elif not _holds(field, kind):
                raise SpecificationError(
                    place,
                    f"{holder.name}.{target} cannot hold {event.name}.{name}, which is {kind}",
                    "give the record a field of this type (optional for one that may be none)",
                )
            if holder is part:
                fields[name] = target
            else:
                outer[name] = target
        return replace(form, fields=fields, around=outer, lists=lists)

    def _list(self, tree: Tree, kind: Type, field: RecordField) -> ListForm:
        tree.only(*_LIST_KEYS)
        item = kind.item
        if item is None or item.kind != "message" or field.kind != "message" or not field.repeated:
            raise SpecificationError(tree.place, f"{kind} is no list of messages", "drop each:")
        message, record = self._model.messages[item.name], self._model.records[field.type_name]
        each, absent = tree.tree("each"), tree.tree("absent")
        fields: dict[str, str] = {}
        kinds = fields_of(message, self._model)
        for name in each.items:
            if name not in kinds:
                raise SpecificationError(
                    each.place_of(name), f"{message.name} has no field {name!r}", "name one of its fields"
                )
            held = self._field(record, each.text(name), each.place_of(name))
            if not kinds[name].is_integer or not _holds(held, kinds[name].required()):
                raise SpecificationError(
                    each.place_of(name),
                    f"{record.name}.{held.name} cannot hold {message.name}.{name}",
                    "map a number to a number of its size",
                )
            fields[name] = held.name
            if name not in absent.items:
                raise SpecificationError(
                    each.place_of(name),
                    f"nothing stands for an absent {name}",
                    f"write absent: {{{name}: 0}}",
                )
        values = {name: self._absent(message, name, absent) for name in fields}
        unless = tree.text("unless", "")
        if unless and not _holds(self._field(record, unless, tree.place_of("unless")), BOOL):
            raise SpecificationError(
                tree.place_of("unless"), f"{record.name}.{unless} is no flag", "name a field of type bool"
            )
        return ListForm(fields, values, unless)

    def _absent(self, message: Message, name: str, tree: Tree) -> ex.Expression:
        """What is recorded of a field that a message leaves out: a number, or a constant by its name."""
        place = tree.place_of(name)
        node = ex.parse(tree.text(name), place)
        kind = fields_of(message, self._model)[name].required()
        require(node, kind, Scope(self._model), place, f"an absent {message.name}.{name}")
        return node

    def _derived(self, event: Event, tree: Tree, part: RecordMessage) -> dict[str, ex.Expression]:
        derived = tree.tree("derived")
        found: dict[str, ex.Expression] = {}
        for name in derived.items:
            found[name] = self._said(part, name, derived, self._scope(event))
        return found

    def _said(self, record: RecordMessage, name: str, tree: Tree, scope: Scope) -> ex.Expression:
        """What is written into a field of a record, beside what its event says."""
        place = tree.place_of(name)
        field = self._field(record, name, place)
        node = ex.parse(tree.text(name), place)
        kind = type_of(node, scope, place)
        if field.kind == "enum" or kind.optional or not _holds(field, kind):
            raise SpecificationError(
                place,
                f"{record.name}.{name} cannot hold {tree.text(name)!r}, which is {kind}",
                "give the record a field of this type",
            )
        return node

    def _with_marks(self, form: RecordForm, event: Event, tree: Tree, part: RecordMessage) -> RecordForm:
        """The values of an enum that part several events of one case."""
        marks = tree.tree("marks")
        if not marks.items:
            return form
        name, *more = marks.items
        if more:
            raise SpecificationError(
                marks.place_of(more[0]), f"{name} and {more[0]} both mark the event", "mark it by one field"
            )
        place = marks.place_of(name)
        field = self._field(part, name, place)
        if field.kind != "enum":
            raise SpecificationError(place, f"{part.name}.{name} is no enum", "mark by a field that is one")
        values = self._model.records[field.type_name].values
        found: list[Mark] = []
        if isinstance(marks.items[name], Scalar):
            found.append(Mark(marks.text(name), _value(values, marks.text(name), place)))
        else:
            for each in marks.listed(name):
                each.only("value", "if")
                value = each.text("value")
                condition = read_condition(each, self._scope(event))
                found.append(Mark(value, _value(values, value, each.place), condition))
        if found[-1].condition is not None or any(each.condition is None for each in found[:-1]):
            raise SpecificationError(
                place, "it is open which mark is written", "give all but the last one an if"
            )
        return replace(form, mark=name, marks=tuple(found))

    def _scope(self, event: Event) -> Scope:
        return Scope(
            self._model,
            variables=self._variables,
            event=event.fields,
            event_name=event.name,
            rules=self._rules,
        )

    def _record(self, name: str, place: Place) -> RecordMessage:
        record = self._model.records.get(name)
        if record is None:
            raise SpecificationError(
                place, f"no message of our own is named {name!r}", "name one below spec/proto/replispec/event"
            )
        return record

    def _field(self, record: RecordMessage, name: str, place: Place, what: str = "") -> RecordField:
        field = record.fields.get(name)
        if field is None:
            held = f", which is to hold {what}" if what else ""
            raise SpecificationError(
                place,
                f"{record.name} has no field {name!r}{held}",
                f"name one of {', '.join(record.fields) or 'none'}, or add it there",
            )
        return field


def _is_remembered(node: ex.Expression) -> bool:
    """Whether a part of an expression may be read when a record is applied."""
    return not isinstance(node, ex.Rule | ex.GuardName) and node != ex.Variable("instance")


def _holds(field: RecordField, kind: Type) -> bool:
    """Whether a field of a record holds every value of a type; an absent list or set is an empty one."""
    if kind.kind in ("list", "set") and kind.item is not None:
        return field.repeated and field.kind in _HOLDS.get(kind.item.kind, ())
    if kind.optional and not field.optional:
        return False
    return not field.repeated and field.kind in _HOLDS.get(kind.kind, ())


def _value(values: Mapping[str, int], name: str, place: Place) -> int:
    if name not in values:
        raise SpecificationError(place, f"no value is named {name!r}", f"values: {', '.join(values)}")
    return values[name]


def _number(tree: Tree, name: str) -> int:
    node = tree.items[name]
    if not isinstance(node, Scalar) or type(node.value) is not int:
        raise SpecificationError(tree.place_of(name), f"{name} stands for no number", f"write {name}: 0")
    return node.value


def _check_held_once(form: RecordForm, log: RecordLog) -> None:
    """Refuse a field of the record that two things are written into."""
    inner = [*form.fields.values(), *form.derived, *([form.mark] if form.mark else [])]
    # What an event says itself stands before what all records say.
    outer = [log.instance, *form.around.values()]
    for held in (inner, outer):
        twice = next((name for name in held if held.count(name) > 1), None)
        if twice is not None:
            raise SpecificationError(
                form.place, f"two things of {form.event} are written into {twice}", "give each its own field"
            )
