"""Types of expressions: which names exist, and which values may meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from replispec.compiler.model import expressions as ex
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import (
    BOOL,
    INT32,
    INT64,
    NONE,
    STRING,
    UNKNOWN_TYPE,
    Type,
    accepts,
    comparable,
)

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class GuardType:
    """What a named guard needs: variables and event fields by name; `event` is the one it speaks of."""

    variables: Mapping[str, Type]
    fields: Mapping[str, Type]
    event: str
    uses_rules: bool


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What may be read of an instance: what it keeps, and variables, states and timers of its machines.

    `peers` names the party of which each instance has a machine of its own with this name.
    """

    party: str
    keeps: Mapping[str, Type] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    states: Mapping[str, frozenset[str]] = field(default_factory=dict)
    peers: Mapping[str, str] = field(default_factory=dict)
    timers: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use. `event` is None where no event exists.

    `sources` holds the fields of header, body and local where a binding may read them, `questions` what
    local answers when it is told of what. In a system `instances` are those that may be named, `parties` the
    parties of which there may be several. Whoever judges may not have seen everything, and may say `unknown`
    where `may_miss` is true; a machine and a system know what they know.
    """

    model: Model
    variables: Mapping[str, Type] = field(default_factory=dict)
    event: Mapping[str, Type] | None = None
    event_name: str = ""
    other: bool = False
    rules: Mapping[str, RuleType] = field(default_factory=dict)
    guards: Mapping[tuple[str, str], GuardType] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    questions: Mapping[str, RuleType] = field(default_factory=dict)
    instances: Mapping[str, InstanceType] = field(default_factory=dict)
    parties: Mapping[str, InstanceType] = field(default_factory=dict)
    may_miss: bool = False


def type_of(
    node: ex.Expression, scope: Scope, place: Place, present: frozenset[ex.Expression] = frozenset()
) -> Type:
    """The type of an expression. Raises SpecificationError for unknown names and values that may not meet."""
    return _Checker(scope, place).type_of(node, present)


def require(
    node: ex.Expression,
    wanted: Type,
    scope: Scope,
    place: Place,
    what: str,
    present: frozenset[ex.Expression] = frozenset(),
) -> None:
    """Refuse an expression whose type is not `wanted`; `what` says where it stands.

    What `present` holds is known not to be none there (see `present_after`).
    """
    given = _Checker(scope, place).type_of(node, present)
    if isinstance(node, ex.Literal) and type(node.value) is int and wanted.is_integer:
        given = _literal_type(node.value, place)
    if not accepts(wanted, given):
        raise SpecificationError(
            place, f"{what} is {given}, not {wanted}", f"give an expression of type {wanted}"
        )


def _literal_type(value: int, place: Place) -> Type:
    if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise SpecificationError(place, f"{value} is no 64-bit integer", "use a smaller number")
    return INT32 if -_INT32_MAX - 1 <= value <= _INT32_MAX else INT64


def _known_names(names: Mapping[str, object]) -> str:
    return f"known here: {', '.join(sorted(names)) or 'none'}"


class _Checker:
    """Walks down with the set of names that were tested against none on the way."""

    def __init__(self, scope: Scope, place: Place) -> None:
        self._scope = scope
        self._place = place

    def _refused(self, fault: str, advice: str) -> SpecificationError:
        return SpecificationError(self._place, fault, advice)

    def type_of(self, node: ex.Expression, present: frozenset[ex.Expression]) -> Type:
        """The type of a node; names in `present` are known not to be none."""
        match node:
            case ex.Literal(value):
                return self._literal(value)
            case ex.UnknownLiteral():
                if not self._scope.may_miss:
                    raise self._refused("nothing is unknown here", "only invariants say unknown; say none")
                return UNKNOWN_TYPE
            case (
                ex.Variable()
                | ex.EventField()
                | ex.SourceField()
                | ex.Rule()
                | ex.LocalCall()
                | ex.Function()
                | ex.PartName()
            ):
                found = self._value(node, present)
                return found.required() if node in present else found
            case ex.Conditional():
                return self._conditional(node, present)
            case ex.EnumMember():
                return self._enum(node)
            case ex.ConstantName():
                return self._constant(node)
            case ex.GuardName():
                return self._guard(node)
            case ex.ForEach() | ex.Compare() | ex.Logic():
                return self._judgement(node, present)
            case ex.Not(part):
                self._truth(part, present)
                return BOOL
            case ex.Arithmetic():
                return self._arithmetic(node, present)
        raise self._out_of_place(node)

    def _judgement(self, node: ex.ForEach | ex.Compare | ex.Logic, present: frozenset[ex.Expression]) -> Type:
        match node:
            case ex.ForEach():
                return self._for_each(node, present)
            case ex.Compare():
                return self._compare(node, present)
        return self._logic(node, present)

    def _out_of_place(self, node: ex.Expression) -> SpecificationError:
        """What is said of a node that has no type where it stands."""
        if isinstance(node, ex.LetName):
            return self._refused(
                f"let.{node.name} is not known here", "let is for conditions and assignments: write it out"
            )
        return self._refused("a choice stands alone", "write x in [..]")

    def _value(self, node: ex.Expression, present: frozenset[ex.Expression]) -> Type:
        """The type of what may be none, before anything is known of it."""
        match node:
            case ex.SourceField():
                return self._source(node)
            case ex.Rule():
                rule = self._rule(node)
                return self._called(f"rule.{node.name}", node.arguments, rule, present)
            case ex.LocalCall():
                question = self._question(node)
                return self._called(f"local.{node.name}", node.arguments, question, present)
            case ex.Function():
                return self._function(node, present)
            case ex.Variable() | ex.EventField():
                return self._name(node)
            case ex.PartName():
                return self._part(node)
        raise AssertionError(f"no value: {node!r}")

    def _literal(self, value: int | str | bool | None) -> Type:
        if value is None:
            return NONE
        if isinstance(value, bool):
            return BOOL
        return STRING if isinstance(value, str) else _literal_type(value, self._place)

    def _name(self, node: ex.Variable | ex.EventField) -> Type:
        scope = self._scope
        if isinstance(node, ex.Variable):
            if node.name not in scope.variables:
                hint = " (a field of the event is event.NAME)" if node.name in (scope.event or {}) else ""
                raise self._refused(
                    f"no variable is named {node.name!r}",
                    f"declare it under variables{hint}; {_known_names(scope.variables)}",
                )
            return scope.variables[node.name]
        if scope.event is None or (node.of == "other" and not scope.other):
            raise self._refused(
                f"{node.of}.{node.name} is used where there is no {node.of}", "use variables only"
            )
        if node.name not in scope.event:
            raise self._refused(f"{scope.event_name} has no field {node.name!r}", _known_names(scope.event))
        return scope.event[node.name]

    def _part(self, node: ex.PartName) -> Type:
        instance, *names = node.names
        kind = self._scope.instances.get(instance)
        if kind is None:
            raise self._refused(
                f"which {instance} is not said", f"of a party of several: NAME.* for NAME in {instance}"
            )
        self._whose(node, kind)
        match names:
            case ["number"]:
                return INT32
            case [kept] if kept in kind.keeps:
                return kind.keeps[kept]
            case [machine, name] if name in kind.machines.get(machine, {}):
                return kind.machines[machine][name]
            case [machine, name] if name in {*kind.states.get(machine, ()), *kind.timers.get(machine, ())}:
                return BOOL
        known = {"number": "", **kind.keeps, **{f"{name}.": "" for name in kind.machines}}
        if len(names) == 2 and names[0] in kind.machines:
            asked = (*kind.states[names[0]], *kind.timers.get(names[0], ()))
            known = {**kind.machines[names[0]], **dict.fromkeys(asked, "")}
        raise self._refused(f"{'.'.join(node.names)} names nothing", _known_names(known))

    def _whose(self, node: ex.PartName, kind: InstanceType) -> None:
        """Refuse a machine of which there are several without a word on which, and the other way round."""
        machine = node.names[1] if len(node.names) == 3 else ""
        party = kind.peers.get(machine, "")
        given = self._scope.instances[node.peer].party if node.peer else ""
        if given != party:
            name = ".".join(node.names[:2])
            advice = f"write {name}[NAME of a {party}]" if party else "leave the brackets out"
            raise self._refused(f"{name} is {f'one for each {party}' if party else 'one alone'}", advice)

    def _for_each(self, node: ex.ForEach, present: frozenset[ex.Expression]) -> Type:
        kind = self._scope.parties.get(node.party)
        if kind is None:
            raise self._refused(f"no party is named {node.party!r}", _known_names(self._scope.parties))
        inner = _Checker(
            replace(self._scope, instances={**self._scope.instances, node.name: kind}), self._place
        )
        if node.condition is not None:
            inner._truth(node.condition, present)
            present |= present_after(node.condition, when=True)
        if node.word in ("all", "any"):
            inner._truth(node.of, present)
            return BOOL
        return replace(inner._made_of("only", inner.type_of(node.of, present)), kind=node.word)

    def _source(self, node: ex.SourceField) -> Type:
        fields = self._scope.sources.get(node.of)
        if fields is None:
            raise self._refused(
                f"{node.of}.{node.name} is used where there is no {node.of}",
                "use it in a binding of a message",
            )
        if node.name not in fields:
            raise self._refused(f"the {node.of} has no field {node.name!r}", _known_names(fields))
        return fields[node.name]

    def _conditional(self, node: ex.Conditional, present: frozenset[ex.Expression]) -> Type:
        self._truth(node.condition, present)
        then = self.type_of(node.then, present | present_after(node.condition, when=True))
        other = self.type_of(node.otherwise, present | present_after(node.condition, when=False))
        if NONE in (then, other):
            return replace(other if then == NONE else then, optional=True)
        for wide, narrow in ((then, other), (other, then)):
            if accepts(wide, narrow):
                return wide
            if accepts(replace(wide, optional=True), narrow):
                return replace(wide, optional=True)
        raise self._refused(f"either {then} or {other}", "give two values of one type")

    def _enum(self, node: ex.EnumMember) -> Type:
        enum = self._scope.model.enums.get(node.enum)
        if enum is None:
            raise self._refused(f"no enum is named {node.enum!r}", _known_names(self._scope.model.enums))
        if all(node.member != value.name for value in enum.values):
            names = {value.name: value for value in enum.values}
            raise self._refused(f"{node.enum} has no value {node.member!r}", _known_names(names))
        return Type("enum", node.enum)

    def _guard(self, node: ex.GuardName) -> Type:
        name = f"guard.{node.machine}.{node.name}" if node.machine else f"guard.{node.name}"
        guard = self._scope.guards.get((node.machine, node.name))
        if guard is None:
            names = {".".join(filter(None, ("guard", *key))): key for key in self._scope.guards}
            raise self._refused(f"no guard is named {name!r}", _known_names(names))
        for kind, needed, given in (
            ("variable", guard.variables, self._scope.variables),
            ("event field", guard.fields, self._scope.event or {}),
        ):
            for each, wanted in needed.items():
                if each not in given or not accepts(wanted, given[each]):
                    raise self._refused(
                        f"{name} needs the {kind} {each} of type {wanted}", "declare it under this name"
                    )
        return BOOL

    def _constant(self, node: ex.ConstantName) -> Type:
        constants = self._scope.model.constants
        if node.name not in constants:
            raise self._refused(
                f"no constant is named {node.name!r}", f"add it to spec/constants; {_known_names(constants)}"
            )
        return self._literal(constants[node.name])

    def _rule(self, node: ex.Rule) -> RuleType:
        rule = self._scope.rules.get(node.name)
        if rule is None:
            raise self._refused(
                f"no rule is named {node.name!r}",
                f"give its vectors under spec/vectors; {_known_names(self._scope.rules)}",
            )
        return rule

    def _question(self, node: ex.LocalCall) -> RuleType:
        questions = self._scope.questions
        if node.name not in questions:
            raise self._refused(
                f"the role is not asked local.{node.name}",
                f"declare it under local, with of:; {_known_names(questions)}",
            )
        return questions[node.name]

    def _called(
        self,
        called: str,
        arguments: tuple[ex.Expression, ...],
        kind: RuleType,
        present: frozenset[ex.Expression],
    ) -> Type:
        if len(arguments) != len(kind.parameters):
            raise self._refused(
                f"{called} is given {len(arguments)} arguments",
                f"it takes: {', '.join(kind.parameters)}",
            )
        for argument, (name, wanted) in zip(arguments, kind.parameters.items(), strict=True):
            given = self.type_of(argument, present)
            if not accepts(wanted, given):
                raise self._refused(f"{name} of {called} is {given}", f"give it a value of type {wanted}")
        return kind.result

    def _function(self, node: ex.Function, present: frozenset[ex.Expression]) -> Type:
        given = [self.type_of(argument, present) for argument in node.arguments]
        if node.name in ("max", "min"):
            return self._integers(node.name, given)
        if node.name == "first":
            if not accepts(replace(given[0], optional=True), given[1]):
                raise self._refused(f"first of {given[0]} and {given[1]}", "give two values of one type")
            return replace(given[0], optional=given[1].optional)
        if node.name in ("only", "listed", "text"):
            return self._made_of(node.name, given[0])
        if node.name in ("set", "elements"):
            return self._set_of(node.name, given[0])
        if node.name in ("get", "put", "drop"):
            return self._of_map(node.name, given)
        if node.name in ("part", "joined", "item", "byte"):
            return self._of_list(node.name, given)
        shapes = ("list", "set", "map", "bytes") if node.name == "size" else ("set",)
        if given[0].kind not in shapes or given[0].optional:
            raise self._refused(
                f"{node.name} of {given[0]}", f"give it a {' or '.join(shapes)} that is not none"
            )
        if node.name == "size":
            return INT64
        if not accepts(given[0], given[1]):
            raise self._refused(f"{node.name} of {given[0]} and {given[1]}", f"the second must be {given[0]}")
        return given[0]

    def _made_of(self, function: str, given: Type) -> Type:
        if function == "text":
            if given != Type("bytes"):
                raise self._refused(f"text of {given}", "give it bytes that are not none")
            return STRING
        if given.optional or given.kind not in ("int32", "int64", "string"):
            raise self._refused(f"{function} of {given}", "give it a number or a text that is not none")
        return Type("set" if function == "only" else "list", item=given)

    def _set_of(self, function: str, given: Type) -> Type:
        item = given.item if given.kind == "list" else None
        if item is None or item.kind not in ("int32", "int64", "string"):
            raise self._refused(f"{function} of {given}", "give it a list of numbers or texts")
        return Type("set", item=item, optional=given.optional and function == "set")

    def _of_map(self, function: str, given: list[Type]) -> Type:
        entries, key = given[0], given[0].key
        if key is None or entries.item is None or entries.optional:
            raise self._refused(f"{function} of {entries}", "give it a map that is not none")
        if function == "get":
            if not accepts(replace(key, optional=True), given[1]):
                raise self._refused(f"get of {entries} by {given[1]}", f"give it a key of type {key}")
            return replace(entries.item, optional=True)
        wanted = (Type("set", item=key),) if function == "drop" else (key, entries.item)
        for each, kind in zip(given[1:], wanted, strict=True):
            if not accepts(kind, each):
                raise self._refused(f"{function} of {entries} is given {each}", f"give it {kind}")
        return entries

    def _of_list(self, function: str, given: list[Type]) -> Type:
        if function == "byte":
            self._integers("byte", given)
            return Type("bytes")
        whole = given[0]
        if whole.kind not in ("list", "bytes") or whole.optional:
            raise self._refused(f"{function} of {whole}", "give it a list or bytes that are not none")
        if function == "joined":
            if not accepts(whole, given[1]):
                raise self._refused(f"joined of {whole} and {given[1]}", f"the second must be {whole}")
            return whole
        self._integers(function, given[1:])
        return whole if function == "part" else replace(whole.item or INT32, optional=True)

    def _integers(self, operator: str, given: list[Type]) -> Type:
        for each in given:
            if not each.is_integer or each.optional:
                advice = "test it against none first, in the same `and`" if each.optional else "use integers"
                raise self._refused(f"{operator} is used on {each}", advice)
        return INT64 if any(each.kind == "int64" for each in given) else INT32

    def _arithmetic(self, node: ex.Arithmetic, present: frozenset[ex.Expression]) -> Type:
        return self._integers(
            node.operator, [self.type_of(each, present) for each in (node.left, node.right)]
        )

    def _compare(self, node: ex.Compare, present: frozenset[ex.Expression]) -> Type:
        left = self.type_of(node.left, present)
        if node.operator in ("in", "not in"):
            self._membership(node, left, present)
            return BOOL
        right = self.type_of(node.right, present)
        if node.operator in ("==", "!="):
            if not comparable(left, right):
                raise self._refused(
                    f"{left} is compared with {right}",
                    "compare values of one type; none only with what may be none",
                )
            return BOOL
        self._integers(node.operator, [left, right])
        return BOOL

    def _membership(self, node: ex.Compare, left: Type, present: frozenset[ex.Expression]) -> None:
        if isinstance(node.right, ex.Choice):
            kinds = [self.type_of(item, present) for item in node.right.items]
        else:
            right = self.type_of(node.right, present)
            if right.item is None or right.optional or right.kind == "map":
                raise self._refused(f"`in` looks into {right}", "look into a list or set that is not none")
            kinds = [right.item]
        for kind in kinds:
            if not comparable(left.required(), kind):
                raise self._refused(f"{left} is looked up among {kind}", "look up a value of the same type")

    def _logic(self, node: ex.Logic, present: frozenset[ex.Expression]) -> Type:
        for part in node.parts:
            self._truth(part, present)
            present |= present_after(part, when=node.operator == "and")
        return BOOL

    def _truth(self, node: ex.Expression, present: frozenset[ex.Expression]) -> None:
        given = self.type_of(node, present)
        if given != BOOL:
            raise self._refused(f"{given} stands where a condition is needed", "compare it with something")


def present_after(node: ex.Expression, *, when: bool) -> frozenset[ex.Expression]:
    """Names that are not none once `node` turned out to be `when`."""
    match node:
        case ex.Compare(operator, left, ex.Literal(None)) if operator == ("!=" if when else "=="):
            return frozenset({left})
        case ex.Logic(operator, parts) if operator == ("and" if when else "or"):
            return frozenset().union(*(present_after(part, when=when) for part in parts))
        case ex.Not(part):
            return present_after(part, when=not when)
    return frozenset()
