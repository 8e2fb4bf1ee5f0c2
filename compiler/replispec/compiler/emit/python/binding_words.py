"""What all emitters of bindings write alike: expressions, names of codes, keys of fields, remarks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from replispec.compiler.emit.python.expressions import HELPERS, bare_words, enum_refs
from replispec.compiler.emit.python.naming import class_name
from replispec.compiler.emit.python.tree import PRIMITIVES, Names, Ref
from replispec.compiler.language.text import to_python, to_text
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import Remark, Source, Text
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model
from replispec.compiler.model.value_types import Type

BOUND: Final = Names(f"{PRIMITIVES}.bindings")
_HELPERS: Final = {
    **HELPERS,
    "as_set": str(BOUND.as_set),
    "entry_of": str(BOUND.entry_of),
    "first": str(BOUND.first_of),
}
_BARE: Final = ("instance", "header", "body", "each", "data", "code")
"""What an expression reads beside the variables."""
_TAKEN: Final = (*_BARE, "codes", "constants", "local", "rules", "variables")
"""What the lines of a reader call something else."""
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOCAL: Final = re.compile(r"\blocal\.([a-z][a-z0-9_]*)")


class BindingWords:
    """Writes parts of the bindings of one machine."""

    def __init__(self, machine: MachineSpec, model: Model) -> None:
        self._model = model
        self._enums = enum_refs(model)
        self._module = f"replispec.wire.{model.family}.machines.{machine.name}"
        self.event = Ref(self._module, "Event")
        self.variables = Ref(self._module, "Variables")
        self.rules = Ref(f"replispec.wire.{model.family}.rules", "Rules")
        self._plain = {name: name for name in _BARE if name not in machine.variables}
        self._machine = machine

    def event_class(self, event: str) -> str:
        """The class of an event of the machine."""
        return str(Ref(self._module, class_name(event)))

    def python(self, node: ex.Expression, plain: Mapping[str, str] | None = None) -> str:
        """An expression over what is known: nothing of a binding is ever unseen."""
        names = {**self._plain, **(plain or {})}
        return to_python(
            node,
            self._enums,
            helpers=_HELPERS,
            all_known=True,
            plain=names,
            keywords=self._model.keywords,
        )

    def reads(self, what: str, node: ex.Expression | None) -> bool:
        """Whether an expression reads the header or the body that `what` names, whole or a field of it."""
        whole = ex.Variable(what) if what in self._plain else None
        return node is not None and any(
            part == whole or (isinstance(part, ex.SourceField) and part.of == what) for part in ex.walk(node)
        )

    def type_of(self, node: ex.Expression) -> Type | None:
        """The type that a name was given; None of what is made of several, and of a name with several."""
        machine, found = self._machine, set[Type]()
        match node:
            case ex.Variable(name) if name in machine.variables:
                found = {machine.variables[name].type}
            case ex.EventField(name):
                found = {each.fields[name] for each in machine.events.values() if name in each.fields}
            case ex.SourceField(name, "local") | ex.LocalCall(name):
                found = {machine.bindings.local[name].type}
        return found.pop() if len(found) == 1 else None

    def label(self, node: ex.Expression, source: Source) -> str:
        """What people call a value that is missing: its key on the wire."""
        messages = {"header": source.header, "body": source.body}
        keys: dict[str, None] = {}
        for each in ex.walk(node):
            if isinstance(each, ex.SourceField) and messages.get(each.of):
                field = self._model.messages[messages[each.of]].field_named(each.name)
                keys[field.key if field is not None else each.name] = None
        return next(iter(keys)) if len(keys) == 1 else to_text(node)

    def codes(self, message: str) -> list[str]:
        """The codes of a command, by name."""
        enum = next(each for each in self._model.enums.values() if each.codes)
        return [
            f"{self._enums[enum.name]}.{value.name}"
            for code in self._model.messages[message].codes
            for value in enum.values
            if value.number == code
        ]

    def number(self, code: ex.EnumMember) -> int:
        """The number of a code: two names may have one."""
        return next(each.number for each in self._model.enums[code.enum].values if each.name == code.member)

    def remark(self, remark: Remark) -> str:
        """The text whose condition holds."""
        *guarded, (_, last) = remark.choices
        chosen = "".join(
            f"{self._text(text)} if {self.python(condition)} else "
            for condition, text in guarded
            if condition is not None
        )
        return chosen + self._text(last)

    def _text(self, text: Text) -> str:
        parts = []
        for part in text.parts:
            if isinstance(part, str):
                parts.append(
                    part.replace("\\", "\\\\").replace('"', '\\"').replace("{", "{{").replace("}", "}}")
                )
            else:
                value = self.python(part)
                parts.append(f"{{{BOUND.listed}({value})}}" if part in text.lists else f"{{{value}}}")
        is_plain = all(isinstance(part, str) for part in text.parts)
        return f'{"" if is_plain else "f"}"{"".join(parts)}"'


def reads_local(nodes: Iterable[ex.Expression | None]) -> bool:
    """Whether any of these asks what only the role knows."""
    return any(
        isinstance(part, ex.LocalCall) or (isinstance(part, ex.SourceField) and part.of == "local")
        for node in nodes
        if node is not None
        for part in ex.walk(node)
    )


def parameters(given: Iterable[str], inside: Iterable[str]) -> str:
    """The parameters of a function; those that its lines do not use start with an underscore."""
    used = bare_words("\n".join(inside))
    return ", ".join(each if each.partition(":")[0] in used else f"_{each}" for each in given)


def asked_once(lines: list[str]) -> list[str]:
    """The lines with what they read of `local` more than once read before."""
    text = "\n".join(lines)
    names = [name for name, count in Counter(_LOCAL.findall(text)).items() if count > 1]
    for name in names:
        text = re.sub(rf"\blocal\.{name}\b", name, text)
    return [*(f"{name} = local.{name}" for name in names), *text.split("\n")]


def read_once(lines: list[str], nodes: Iterable[ex.Expression], words: BindingWords) -> list[str]:
    """The lines of a request's reader, with what they read or ask more than once read before."""
    counts = Counter(part for node in nodes for part in ex.walk(node) if _is_reading(part))
    again = sorted((part for part, count in counts.items() if count > 1), key=_is_asking)
    names: dict[str, str] = {}
    for part in again:
        read, name = words.python(part), _name_of(part)
        for earlier, known in names.items():
            read = read.replace(earlier, known)
        if name in _TAKEN or name in names.values():
            continue
        names[read] = name
        # In an expression it stands in parentheses, which a name needs not.
        lines = [re.sub(rf"(?<!\w)\({re.escape(read)}\)", name, each).replace(read, name) for each in lines]
        used = [number for number, each in enumerate(lines) if name in bare_words(each)]
        if used:
            # What is asked may need that what stands before has not refused the request.
            first = used[0] if _is_asking(part) else len(names) - 1
            while lines[first].startswith(" "):
                first -= 1
            lines.insert(first, f"{name} = {read}")
    return lines


def _is_asking(node: ex.Expression) -> bool:
    return isinstance(node, ex.LocalCall | ex.Rule)


def _is_reading(node: ex.Expression) -> bool:
    """Whether this asks, or is a field of the header, or a literal where that is none."""
    match node:
        case ex.LocalCall() | ex.Rule():
            return True
        case ex.Function("first", (ex.SourceField(_, "header"), ex.Literal())):
            return True
    return False


def _name_of(node: ex.Expression) -> str:
    if isinstance(node, ex.LocalCall | ex.Rule):
        return node.name
    return next(each.name for each in ex.walk(node) if isinstance(each, ex.SourceField))


def snake(name: str) -> str:
    """`GetMetadataRequest` as get_metadata."""
    return _WORD.sub("_", name.removesuffix("Request")).lower()


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines, one level deeper."""
    for line in lines:
        for part in line.split("\n"):
            yield f"    {part}" if part else ""
