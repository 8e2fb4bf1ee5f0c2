"""The record of an event in a log, and the event of a record."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.binding_words import BindingWords, indented, parameters
from replispec.compiler.emit.python.tree import (
    ABC,
    PRIMITIVES,
    TYPING,
    Constant,
    FunctionDef,
    Names,
    Node,
    own,
)
from replispec.compiler.language.text import or_else
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import ListForm, RecordForm, RecordLog
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.value_types import Type

_ERRORS = Names(f"{PRIMITIVES}.errors")


def record_nodes(machine: MachineSpec, log: RecordLog, words: BindingWords) -> Iterator[Node]:
    """`record_of` and `event_of_record`, with what they need."""
    writer = _Records(machine, log, words)
    yield from writer.marks()
    yield from writer.lists()
    yield writer.written()
    yield writer.read()
    names = ", ".join(words.event_class(name) for name in machine.bindings.records)
    kind = f"{TYPING.Final}[tuple[type[{TYPING.Any}], ...]]"
    about = "The events that are recorded; no other event changes what is remembered."
    yield Constant("RECORDED", f"({names},)", kind, about)


class _Records:
    def __init__(self, machine: MachineSpec, log: RecordLog, words: BindingWords) -> None:
        self._machine = machine
        self._log = log
        self._words = words
        self._forms = machine.bindings.records

    def marks(self) -> Iterator[Constant]:
        """The values of the record's enum that tell which event it is."""
        marks = {(mark.number, mark.name) for form in self._forms.values() for mark in form.marks}
        for number, name in sorted(marks):
            yield Constant(name, str(number), str(TYPING.Final))

    def lists(self) -> Iterator[FunctionDef]:
        """What writes and reads the messages of a list, one function each for all events that have it."""
        seen: set[tuple[str, str]] = set()
        for form in self._forms.values():
            for name, listed in form.lists.items():
                kind = self._machine.events[form.event].fields[name].item
                names = self._list_names(form, name)
                if kind is not None and names not in seen:
                    seen.add(names)
                    yield self._list_writer(names[0], listed, kind)
                    yield self._list_reader(names[1], listed, kind)

    def _list_names(self, form: RecordForm, name: str) -> tuple[str, str]:
        """What writes and what reads a list: named after it, and after the event where several differ."""
        others = {
            (other.fields[name], repr(other.lists[name]))
            for other in self._forms.values()
            if name in other.lists
        }
        which = f"_of_{form.event}" if len(others) > 1 else ""
        return f"_recorded_{name}{which}", f"_{name}_of{which}_record"

    def _list_writer(self, name: str, form: ListForm, kind: Type) -> FunctionDef:
        rows = ", ".join(
            f'"{target}": {or_else(f"each.{field}", self._words.python(absent))}'
            for (field, target), absent in zip(form.fields.items(), form.absent.values(), strict=True)
        )
        given = f"items: {ABC.Iterable}[{own(kind.name)}]"
        return FunctionDef(
            name, given, f"list[dict[str, {TYPING.Any}]]", [f"return [{{{rows}}} for each in items]"]
        )

    def _list_reader(self, name: str, form: ListForm, kind: Type) -> FunctionDef:
        fields = ", ".join(f"{field}=each.{held}" for field, held in form.fields.items())
        unless = f" if not each.{form.unless}" if form.unless else ""
        inside = [f"return [{own(kind.name)}({fields}) for each in items{unless}]"]
        return FunctionDef(name, f"items: {TYPING.Any}", f"list[{own(kind.name)}]", inside)

    def written(self) -> FunctionDef:
        """`record_of`."""
        inside = ["match event:"]
        for form in self._forms.values():
            inside.append(f"    case {self._words.event_class(form.event)}():")
            inside += indented(indented([f"return {self._record(form)}"]))
        inside += ["    case _:"]
        message = 'f"{type(event).__name__} is never recorded"'
        inside += [f"        raise {_ERRORS.LocalProtocolError}({message})"]
        given = (
            "instance: str",
            f"event: {self._words.event}",
            f"variables: {self._words.variables}",
            f"rules: {self._words.rules}",
        )
        about = (
            f"The fields of the {self._log.message} that an event of an instance is recorded as.\n\n"
            "Raises LocalProtocolError for one that is never recorded."
        )
        return FunctionDef("record_of", parameters(given, inside), f"dict[str, {TYPING.Any}]", inside, about)

    def _record(self, form: RecordForm) -> str:
        fields = [f'"{self._log.instance}": instance']
        fields += [
            f'"{name}": {self._words.python(node)}'
            for name, node in self._log.fields.items()
            if name not in form.around.values()
        ]
        fields += [f'"{target}": event.{name}' for name, target in form.around.items()]
        return f'{{{", ".join(fields)}, "{form.case}": {self._case(form)}}}'

    def _case(self, form: RecordForm) -> str:
        """The fields of the case; one that may be none is left out then."""
        event = self._machine.events[form.event]
        always, perhaps = [], []
        if form.mark:
            *guarded, last = form.marks
            chosen = "".join(
                f"{mark.name} if {self._words.python(mark.condition)} else "
                for mark in guarded
                if mark.condition is not None
            )
            always.append(f'"{form.mark}": {chosen}{last.name}')
        for name, target in form.fields.items():
            kind = event.fields[name]
            value = self._held(name, kind, self._list_names(form, name)[0] if name in form.lists else "")
            if kind.optional and kind.item is None:
                perhaps.append(f'**({{}} if event.{name} is None else {{"{target}": event.{name}}})')
            else:
                always.append(f'"{target}": {value}')
        always += [f'"{name}": {self._words.python(node)}' for name, node in form.derived.items()]
        return f"{{{', '.join([*always, *perhaps])}}}"

    def _held(self, name: str, kind: Type, listed: str) -> str:
        value = f"event.{name}"
        if listed:
            return f"{listed}({value})"
        if kind.item is None:
            return value
        absent = " or ()" if kind.optional else ""
        return f"sorted({value}{absent})" if kind.kind == "set" else f"list({value}{absent})"

    def read(self) -> FunctionDef:
        """`event_of_record`."""
        cases: dict[str, list[RecordForm]] = {}
        for form in self._forms.values():
            cases.setdefault(form.case, []).append(form)
        inside = [f'match record.WhichOneof("{self._log.oneof}"):']
        for case, forms in cases.items():
            lines = [f"part = record.{case}"]
            for form in forms:
                made = list(self._event(form))
                if form.mark:
                    names = [mark.name for mark in form.marks]
                    fits = f"in ({', '.join(names)})" if len(names) > 1 else f"== {names[0]}"
                    lines += [f"if part.{form.mark} {fits}:", *indented(made)]
                else:
                    lines += made
            inside += [f'    case "{case}":', *indented(indented(lines))]
        inside.append("return None")
        given = (f"record: {TYPING.Any}", f"variables: {self._words.variables}")
        about = f"The event that a {self._log.message} of protobuf is; None for one that decides nothing."
        returns = f"{self._words.event} | None"
        return FunctionDef("event_of_record", parameters(given, inside), returns, inside, about)

    def _event(self, form: RecordForm) -> Iterator[str]:
        event = self._machine.events[form.event]
        parts = [part for node in form.recalled.values() for part in ex.walk(node)]
        read_first = {part.name for part in parts if isinstance(part, ex.EventField)}
        plain = {f"event.{name}": name for name in read_first}
        values = []
        for name, kind in event.fields.items():
            if name in form.recalled:
                values.append(f"{name}={self._words.python(form.recalled[name], plain)}")
                continue
            text = self._kept(form, name, kind)
            if name in read_first:
                yield f"{name} = {text}"
                text = name
            values.append(f"{name}={text}")
        yield f"return {self._words.event_class(form.event)}({', '.join(values)})"

    def _kept(self, form: RecordForm, name: str, kind: Type) -> str:
        if name in form.around:
            return f"record.{form.around[name]}"
        target = form.fields[name]
        value = f"part.{target}"
        if name in form.lists:
            return f"{self._list_names(form, name)[1]}({value})"
        if kind.item is not None:
            text = f"{'frozenset' if kind.kind == 'set' else 'tuple'}({value})"
            return f"{text} or None" if kind.optional else text
        return f'{value} if part.HasField("{target}") else None' if kind.optional else value
