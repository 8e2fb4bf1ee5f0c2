"""What an expression becomes: Python, the language's own text, plain English, and single mutations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from replispec.compiler.model import expressions as ex

_TIGHTNESS = {"if": 0, "or": 1, "and": 2, "not": 3, "compare": 4, "+": 5, "-": 5, "*": 6}
_ENGLISH = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is greater than",
    ">=": "is at least",
    "in": "is in",
    "not in": "is not in",
}
_OTHER_COMPARISONS = {
    "==": ("!=",),
    "!=": ("==",),
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "in": ("not in",),
    "not in": ("in",),
}
_OTHER_ARITHMETIC = {"+": "-", "-": "+", "*": "+"}

_HELPERS: Final = {
    "set": "as_set",
    "text": "text_of",
    "put": "with_entry",
    "drop": "without_entries",
    "part": "part_of",
    "joined": "joined",
    "item": "item_of",
    "byte": "byte_of",
    "listed": "list_of",
}
"""What functions are called in the runtime."""
_IN_WORDS: Final = {
    "max": "the larger of {} and {}",
    "min": "the smaller of {} and {}",
    "size": "the number of elements of {}",
    "common": "what {} and {} have in common",
    "without": "{} without {}",
    "first": "{}, or if absent {}",
    "union": "{} and {} together",
    "only": "the set of {} alone",
    "text": "{} as a text",
    "set": "the elements of {}",
    "elements": "the elements of {}",
    "get": "what {} has for {}",
    "put": "{0} with {2} for {1}",
    "drop": "{} without those of {}",
    "part": "{} from place {} to before {}",
    "joined": "{} followed by {}",
    "item": "what stands in {} at place {}",
    "byte": "the byte {}",
    "listed": "the list of {} alone",
}
CONSTANTS: Final = "constant"
"""Under which Python knows the module of the constants, beside those of the enums."""


def _tightness(node: ex.Expression) -> int:
    match node:
        case ex.Logic(operator, _) | ex.Arithmetic(operator, _, _):
            return _TIGHTNESS[operator]
        case ex.Conditional():
            return _TIGHTNESS["if"]
        case ex.Not():
            return _TIGHTNESS["not"]
        case ex.Compare():
            return _TIGHTNESS["compare"]
    return 9


class _Writer:
    """Writes a tree; subclasses say how names and operators look."""

    def write(self, node: ex.Expression) -> str:
        """The text of a node and all below it."""
        match node:
            case ex.Rule(name, arguments):
                return self.rule(name, [self.write(each) for each in arguments])
            case ex.LocalCall(name, arguments):
                return f"local.{name}({', '.join(self.write(each) for each in arguments)})"
            case ex.Function(name, arguments):
                return self.function(name, [self.write(each) for each in arguments])
            case ex.Choice(items):
                return f"[{', '.join(map(self.write, items))}]"
            case ex.Compare():
                return self.compare(node)
            case ex.Logic(operator, parts):
                return f" {operator} ".join(self.inside(part, node) for part in parts)
            case ex.Conditional():
                return self.conditional(node)
            case ex.Not(part):
                return f"not {self.inside(part, node)}"
            case ex.ForEach(word, of, name, party, condition):
                only = f" if {self.write(condition)}" if condition is not None else ""
                return f"{word}({self.write(of)} for {name} in {party}{only})"
            case ex.Arithmetic(operator, left, right):
                return f"{self.inside(left, node)} {operator} {self.inside(right, node, right=True)}"
        return self.leaf(node)

    def leaf(self, node: ex.Expression) -> str:
        """The text of a node that has nothing below it."""
        match node:
            case ex.Literal(value):
                return self.literal(value)
            case ex.UnknownLiteral():
                return "unknown"
            case ex.Variable(name):
                return self.variable(name)
            case ex.EventField(name, of):
                return self.event_field(name, of)
            case ex.SourceField(name, of):
                return self.source_field(name, of)
            case ex.EnumMember(enum, member):
                return self.enum_member(enum, member)
            case ex.ConstantName(name):
                return self.constant(name)
            case ex.PartName(names, peer):
                return f"{names[0]}.{names[1]}[{peer}].{names[2]}" if peer else ".".join(names)
            case ex.LetName(name):
                return f"let.{name}"
            case ex.GuardName(machine, name):
                return self.guard(machine, name)
        raise AssertionError(f"no node of the language: {node!r}")

    def inside(self, node: ex.Expression, outer: ex.Expression, *, right: bool = False) -> str:
        """The node within `outer`, in parentheses where it would otherwise be read differently."""
        text = self.write(node)
        if isinstance(node, ex.Conditional) or (isinstance(outer, ex.Logic) and isinstance(node, ex.Logic)):
            return f"({text})"
        loose = _tightness(node) < _tightness(outer) + (
            1 if right or isinstance(outer, ex.Compare | ex.Logic) else 0
        )
        return f"({text})" if loose else text

    def literal(self, value: int | str | bool | None) -> str:
        if value is None or isinstance(value, bool):
            return {None: "none", True: "true", False: "false"}[value]
        return repr(value)

    def variable(self, name: str) -> str:
        return name

    def event_field(self, name: str, of: str) -> str:
        return f"{of}.{name}"

    def source_field(self, name: str, of: str) -> str:
        return f"{of}.{name}"

    def conditional(self, node: ex.Conditional) -> str:
        parts = (node.then, node.condition, node.otherwise)
        then, condition, otherwise = (self.inside(each, node) for each in parts)
        return f"{then} if {condition} else {otherwise}"

    def enum_member(self, enum: str, member: str) -> str:
        return f"{enum}.{member}"

    def constant(self, name: str) -> str:
        return f"constant.{name}"

    def guard(self, machine: str, name: str) -> str:
        return ".".join(filter(None, ("guard", machine, name)))

    def rule(self, name: str, arguments: list[str]) -> str:
        return f"rule.{name}({', '.join(arguments)})"

    def function(self, name: str, arguments: list[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    def compare(self, node: ex.Compare) -> str:
        return f"{self.inside(node.left, node)} {node.operator} {self.inside(node.right, node)}"


class _Python(_Writer):
    """Python over the names that `to_python` tells; enum values as their numbers' names."""

    def __init__(
        self,
        enums: Mapping[str, str],
        guards: Mapping[tuple[str, str], str],
        helpers: Mapping[str, str],
        *,
        all_known: bool = False,
        plain: Mapping[str, str] | None = None,
        named: Mapping[ex.Expression, str] | None = None,
        keywords: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._enums = enums
        self._guards = guards
        self._helpers = helpers
        self._all_known = all_known
        self._plain = plain or {}
        self._named = named or {}
        self._keywords = keywords or {}

    def _helper(self, name: str) -> str:
        """The Python name of a function or value of the runtime."""
        return self._helpers.get(name, name)

    def write(self, node: ex.Expression) -> str:
        """The text of a node and all below it."""
        if node in self._named:
            return self._named[node]
        if self._all_known and isinstance(node, ex.Function) and node.name == "get":
            return f"{self._helper('entry_of')}({', '.join(map(self.write, node.arguments))})"
        if self._all_known and isinstance(node, ex.Function) and node.name == "first":
            return self._first(list(_firsts(node)))
        return super().write(node)

    def _first(self, tried: list[ex.Expression]) -> str:
        """The first one that is there. A call asks for all; what is worth asking for only then is no call."""
        if _stands_in(tried):
            return or_else(self.write(tried[0]), self.write(tried[1]))
        *texts, last = map(self.write, tried)
        helper = self._helpers.get("first")
        if helper is None or any(True for node in tried[1:] for _ in ex.children(node)):
            return f"({' '.join(f'{each} if {each} is not None else' for each in texts)} {last})"
        for each in reversed(texts):
            last = f"{helper}({each}, {last})"
        return last

    def inside(self, node: ex.Expression, outer: ex.Expression, *, right: bool = False) -> str:
        """The node within `outer`, in parentheses where it would otherwise be read differently."""
        if self._all_known and node not in self._named and _stands_in(list(_firsts(node))):
            return f"({self.write(node)})"
        return super().inside(node, outer, right=right)

    def literal(self, value: int | str | bool | None) -> str:
        return repr(value)

    def variable(self, name: str) -> str:
        return self._plain.get(name) or f"variables.{name}"

    def event_field(self, name: str, of: str) -> str:
        if f"event.{name}" in self._plain:
            return self._plain[f"event.{name}"]
        return f"event.{name}" if of == "event" else f"variables.{name}"

    def enum_member(self, enum: str, member: str) -> str:
        return f"{self._enums[enum]}.{member}"

    def constant(self, name: str) -> str:
        return f"{self._enums[CONSTANTS]}.{name}"

    def guard(self, machine: str, name: str) -> str:
        return self._guards[machine, name]

    def rule(self, name: str, arguments: list[str]) -> str:
        keywords = self._keywords.get(name, ())
        first = len(arguments) - len(keywords)
        said = (f"{key}={each}" for key, each in zip(keywords, arguments[first:], strict=True))
        return f"rules.{name}({', '.join((*arguments[:first], *said))})"

    def function(self, name: str, arguments: list[str]) -> str:
        match name:
            case "size":
                return f"len({arguments[0]})"
            case "common":
                return f"{arguments[0]}.intersection({arguments[1]})"
            case "without":
                return f"{arguments[0]}.difference({arguments[1]})"
            case "first":
                return f"({arguments[0]} if {arguments[0]} is not None else {arguments[1]})"
            case "union":
                return f"{arguments[0]}.union({arguments[1]})"
            case "only":
                return f"frozenset(({arguments[0]},))"
            case "elements":
                return f"frozenset({arguments[0]} or ())"
            case "get":
                return f"{arguments[0]}.get({arguments[1]})"
        return f"{self._helper(_HELPERS.get(name, name))}({', '.join(arguments)})"

    def compare(self, node: ex.Compare) -> str:
        match node:
            case ex.Compare("==" | "!=", left, ex.Literal(None | bool() as value)) if self._all_known:
                # A truth value may be absent, too.
                return f"{self.inside(left, node)} {'is' if node.operator == '==' else 'is not'} {value}"
            case ex.Compare("==" | "!=", left, ex.Literal(None)):
                # `is None` would answer about what was not seen.
                helper = self._helper("is_none")
                return f"{'' if node.operator == '==' else 'not '}{helper}({self.write(left)})"
            case ex.Compare("==" | "!=", left, ex.UnknownLiteral()):
                says = "is" if node.operator == "==" else "is not"
                return f"{self.inside(left, node)} {says} {self._helper('UNKNOWN')}"
            case ex.Compare("==" | "!=" as operator, left, ex.Literal(bool() as value)):
                text = self.inside(left, node)
                return text if value is (operator == "==") else f"not {text}"
            case ex.Compare("in" | "not in" as operator, left, ex.Choice(items)):
                names = ", ".join(map(self.write, items))
                return f"{self.inside(left, node)} {operator} ({names},)"
        return super().compare(node)

    def leaf(self, node: ex.Expression) -> str:
        return self._helper("UNKNOWN") if isinstance(node, ex.UnknownLiteral) else super().leaf(node)


class _English(_Writer):
    """A sentence for people; names of rules are links where the page of the rules is given."""

    def __init__(self, rules_page: str) -> None:
        self._rules_page = rules_page

    def variable(self, name: str) -> str:
        return f"`{name}`"

    def source_field(self, name: str, of: str) -> str:
        return f"`{of}.{name}`"

    def constant(self, name: str) -> str:
        return f"`{name}`"

    def event_field(self, name: str, of: str) -> str:
        return f"the event's `{name}`" if of == "event" else f"the other event's `{name}`"

    def guard(self, machine: str, name: str) -> str:
        return f"*{name.replace('_', ' ')}*" + (f" ({machine})" if machine else "")

    def rule(self, name: str, arguments: list[str]) -> str:
        shown = name.replace("_", " ")
        linked = f"[{shown}]({self._rules_page}#{name})" if self._rules_page else shown
        return f"{linked}({', '.join(arguments)})"

    def function(self, name: str, arguments: list[str]) -> str:
        return _IN_WORDS[name].format(*arguments)

    def compare(self, node: ex.Compare) -> str:
        if isinstance(node.right, ex.Literal) and node.right.value is None:
            return f"{self.inside(node.left, node)} is {'absent' if node.operator == '==' else 'present'}"
        return f"{self.inside(node.left, node)} {_ENGLISH[node.operator]} {self.inside(node.right, node)}"


def _firsts(node: ex.Expression) -> Iterator[ex.Expression]:
    """What is tried in turn by `first`, and `first` within it."""
    if isinstance(node, ex.Function) and node.name == "first":
        for each in node.arguments:
            yield from _firsts(each)
    else:
        yield node


def _stands_in(tried: Sequence[ex.Expression]) -> bool:
    """Whether one name is tried, and then a value that is known."""
    match tried:
        case [ex.SourceField() | ex.EventField() | ex.Variable(), ex.Literal(value)]:
            return value is not None
    return False


def or_else(value: str, otherwise: str) -> str:
    """Python's text for a value, or what stands for it where it is None; `value` is asked twice."""
    if otherwise in ("0", "''", '""', "False"):
        # The only other value that is no truth is the same one.
        return f"{value} or {otherwise}"
    return f"{otherwise} if {value} is None else {value}"


def to_text(node: ex.Expression) -> str:
    """The expression in its own language; parsing it again gives an equal tree."""
    return _Writer().write(node)


def to_english(node: ex.Expression, rules_page: str = "") -> str:
    """The expression as Markdown prose; `rules_page` is the way from its document to that of the rules."""
    return _English(rules_page).write(node)


def to_python(
    node: ex.Expression,
    enums: Mapping[str, str] | None = None,
    guards: Mapping[tuple[str, str], str] | None = None,
    helpers: Mapping[str, str] | None = None,
    *,
    all_known: bool = False,
    plain: Mapping[str, str] | None = None,
    named: Mapping[ex.Expression, str] | None = None,
    keywords: Mapping[str, tuple[str, ...]] | None = None,
) -> str:
    """The expression as Python over `variables`, `event`, `rules`, and `is_none` and `UNKNOWN` of
    `runtime.primitives.unknown`.

    `enums` gives the Python name of each enum class, and of the module of constants, `guards` the Python
    call of each named guard, `helpers` what the runtime's functions and values are called where not by
    their own names.
    `all_known`: nothing that it reads is ever UNKNOWN. `plain` gives the Python of names that are none of a
    variable or a field: `x`, or `event.x`; `named` that of expressions that have a name. `keywords` are
    the last arguments of each rule, which a call names.
    """
    given = (enums or {}, guards or {}, helpers or {})
    writer = _Python(*given, all_known=all_known, plain=plain, named=named, keywords=keywords)
    return writer.write(node)


@dataclass(frozen=True, slots=True)
class Mutation:
    """An expression that differs in one place; `says` names the place and the change."""

    says: str
    mutant: ex.Expression


def mutations(node: ex.Expression) -> list[Mutation]:
    """Every expression that differs from `node` by one edit, in a fixed order, each once.

    Edits keep the types: another comparison, `and` for `or`, a part of a condition left out, a
    negation added or dropped, + for -, an integer off by one, a truth value turned round.
    """
    found: dict[ex.Expression, Mutation] = {}
    for mutant in _mutants(node):
        if mutant != node:
            found.setdefault(mutant, Mutation(f"{to_text(node)} -> {to_text(mutant)}", mutant))
    return list(found.values())


def _mutants(node: ex.Expression) -> Iterator[ex.Expression]:
    yield from _own_mutants(node)
    for name, index, child in ex.children(node):
        for mutant in _mutants(child):
            value: ex.Expression | tuple[ex.Expression, ...] = mutant
            if index >= 0:
                items = getattr(node, name)
                value = (*items[:index], mutant, *items[index + 1 :])
            yield replace(node, **{name: value})  # type: ignore[type-var]  # every node is a dataclass


def _own_mutants(node: ex.Expression) -> Iterator[ex.Expression]:
    """The mutants of the node itself, without those of its children."""
    match node:
        case ex.Literal(bool() as truth):
            yield ex.Literal(not truth)
        case ex.Literal(int() as value):
            yield from (ex.Literal(value + 1), ex.Literal(value - 1))
        case ex.Compare(operator, _, right):
            absent = isinstance(right, ex.Literal) and right.value is None
            others = _OTHER_COMPARISONS[operator]
            for other in others[:1] if absent else others:
                yield replace(node, operator=other)
        case ex.Logic(operator, parts):
            yield replace(node, operator="or" if operator == "and" else "and")
            for index in range(len(parts)):
                rest = parts[:index] + parts[index + 1 :]
                yield rest[0] if len(rest) == 1 else replace(node, parts=rest)
        case ex.Conditional(_, then, otherwise):
            yield from (then, otherwise)
        case ex.Not(part):
            yield part
        case ex.Arithmetic(operator, _, _):
            yield replace(node, operator=_OTHER_ARITHMETIC[operator])
        case ex.Function("max" | "min" as name, _):
            yield replace(node, name="min" if name == "max" else "max")
        case ex.GuardName():
            yield ex.Not(node)
