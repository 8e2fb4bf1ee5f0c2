"""The record of an event in a log, and the event of a record."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.binding_words import BindingWords, indented, parameters
from replispec.compiler.emit.python.machines import class_name, docstring
from replispec.compiler.language import expressions as ex
from replispec.compiler.model.binding import ListForm, RecordForm, RecordLog
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.value_types import Type


def record_lines(machine: Machine, log: RecordLog, words: BindingWords) -> Iterator[str]:
    """The lines of `record_of` and `event_of_record`."""
    writer = _Records(machine, log, words)
    yield from writer.written()
    yield from writer.read()
    names = ", ".join(class_name(name) for name in machine.bindings.records)
    yield f"RECORDED: Final[tuple[type[Any], ...]] = ({names},)"
    yield '"""The events that are recorded; no other event changes what is remembered."""'
    yield ""


class _Records:
    def __init__(self, machine: Machine, log: RecordLog, words: BindingWords) -> None:
        self._machine = machine
        self._log = log
        self._words = words
        self._forms = machine.bindings.records

    def written(self) -> Iterator[str]:
        """`record_of`, and the marks that it writes."""
        for number, name in sorted(
            {(mark.number, mark.name) for form in self._forms.values() for mark in form.marks}
        ):
            yield f"{name}: Final = {number}"
        yield ""
        inside = ["match event:"]
        for form in self._forms.values():
            inside.append(f"    case {class_name(form.event)}():")
            inside += indented(indented([f"return {self._record(form)}"]))
        inside += ["    case _:"]
        inside += ['        raise LocalProtocolError(f"{type(event).__name__} is never recorded")']
        given = ("instance: str", "event: Event", "variables: Variables", "rules: Rules")
        yield f"def record_of({parameters(given, inside)}) -> dict[str, Any]:"
        about = f"The fields of the {self._log.message} that an event of an instance is recorded as."
        yield from indented(docstring(about, "Raises LocalProtocolError for one that is never recorded."))
        yield from indented(inside)
        yield ""

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
            value = self._held(name, kind, form.lists.get(name))
            if kind.optional and kind.item is None:
                perhaps.append(f'**({{}} if event.{name} is None else {{"{target}": event.{name}}})')
            else:
                always.append(f'"{target}": {value}')
        always += [f'"{name}": {self._words.python(node)}' for name, node in form.derived.items()]
        return f"{{{', '.join([*always, *perhaps])}}}"

    def _held(self, name: str, kind: Type, form: ListForm | None) -> str:
        value = f"event.{name}"
        if form is not None:
            rows = ", ".join(
                f'"{target}": {self._words.python(absent)} if each.{field} is None else each.{field}'
                for (field, target), absent in zip(form.fields.items(), form.absent.values(), strict=True)
            )
            return f"[{{{rows}}} for each in {value}]"
        if kind.item is None:
            return value
        absent = " or ()" if kind.optional else ""
        return f"sorted({value}{absent})" if kind.kind == "set" else f"list({value}{absent})"

    def read(self) -> Iterator[str]:
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
        given = ("record: Any", "variables: Variables")
        yield f"def event_of_record({parameters(given, inside)}) -> Event | None:"
        about = f"The event that a {self._log.message} of protobuf is; None for one that decides nothing."
        yield from indented(docstring(about))
        yield from indented(inside)
        yield ""

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
        yield f"return {class_name(form.event)}({', '.join(values)})"

    def _kept(self, form: RecordForm, name: str, kind: Type) -> str:
        if name in form.around:
            return f"record.{form.around[name]}"
        target = form.fields[name]
        value = f"part.{target}"
        listed = form.lists.get(name)
        if listed is not None and kind.item is not None:
            fields = ", ".join(f"{field}=each.{held}" for field, held in listed.fields.items())
            unless = f" if not each.{listed.unless}" if listed.unless else ""
            return f"[{kind.item.name}({fields}) for each in {value}{unless}]"
        if kind.item is not None:
            text = f"{'frozenset' if kind.kind == 'set' else 'tuple'}({value})"
            return f"{text} or None" if kind.optional else text
        return f'{value} if part.HasField("{target}") else None' if kind.optional else value
