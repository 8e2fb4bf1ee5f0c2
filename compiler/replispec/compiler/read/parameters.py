"""parameters/FAMILY/*.yaml: what may be configured, read and checked.

roles.yaml names the roles, and what of an implementation's files has no effect. Every other file holds a
group of parameters; `roles` and `ignored_by` at its head hold for all of them that say nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from replispec.compiler.check.python_names import check_word
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Place, SpecificationError
from replispec.compiler.model.parameter import (
    DURATION,
    ConfigurationSpec,
    Group,
    Idle,
    ParameterSpec,
    RoleSpec,
    Value,
    field_name,
)
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.yaml_source import Scalar, Tree

ROLES_FILE: Final = "roles.yaml"
_NAME: Final = re.compile(r"[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_FIELD: Final = re.compile(r"[a-z][a-z0-9_]*")
_DURATION: Final = re.compile(r"(?P<count>[0-9]+) (?P<unit>ms|s|min|h)")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:;\[\]]+):[0-9]{1,5}")
NUMBERS: Final = ("number", "bytes", "port", "duration")
TYPES: Final = ("flag", "text", "word", "path", "secret", "choice", "addresses", "peers", *NUMBERS)
# What a port and a duration are without bounds of their own: 16 bits; a millisecond to an hour.
_BOUNDS: Final = {"port": (0, 65_535), DURATION: (1, 3_600_000)}
_KEYS: Final = (
    *("about", "type", "default", "defaults", "minimum", "maximum", "values", "aliases", "roles"),
    *("ignored_by", "origin", "deviates", "releases", "timer_of", "changes", "not_below"),
)


def read_parameters(trees: Mapping[str, Tree]) -> ConfigurationSpec:
    """The parameters of a family from its files, by their names; nothing without files.

    Raises SpecificationError.
    """
    if not trees:
        return ConfigurationSpec()
    named = {name: tree for name, tree in trees.items() if name.endswith(f"/{ROLES_FILE}")}
    if not named:
        folder = next(iter(trees)).rpartition("/")[0]
        raise SpecificationError(
            Place(folder), "no file says which roles there are", f"write {folder}/{ROLES_FILE}"
        )
    head = next(iter(named.values()))
    head.only("roles", "without_effect")
    roles = dict(_roles(head))
    groups = tuple(_Group(tree, roles).group() for name, tree in trees.items() if name not in named)
    idle = tuple(_idle(head, roles))
    _check_names(groups, idle, head)
    _check_fields(groups)
    return ConfigurationSpec(roles, groups, idle)


def check_timers(configuration: ConfigurationSpec, machines: Mapping[str, MachineSpec]) -> None:
    """Refuse a parameter that names a machine without such a timer, and one that leaves a machine out."""
    timed: dict[str, set[str]] = {}
    for machine in machines.values():
        periods = {event.timer for event in machine.events.values() if event.timer}
        periods |= {timer.period for timer in machine.timers.values()}
        periods |= {timer.longest.name for timer in machine.timers.values() if timer.longest is not None}
        for period in periods:
            timed.setdefault(period, set()).add(machine.name)
    for each in configuration.parameters.values():
        declared, found = set(each.timer_of), timed.get(each.name, set())
        for name in sorted(declared - found):
            raise SpecificationError(
                each.place, f"no machine {name} has a timer {each.name}", f"write timer_of: {sorted(found)}"
            )
        for name in sorted(found - declared):
            raise SpecificationError(
                each.place,
                f"the machine {name} has the timer {each.name}, which timer_of leaves out",
                f"write timer_of: {sorted(found)}",
            )


def default_ms(configuration: ConfigurationSpec, timer: str, place: Place) -> int:
    """How long a machine's timer lasts by default: the default of the parameter of its name."""
    parameter = configuration.parameters.get(timer)
    if parameter is None or parameter.type != DURATION:
        known = [each.name for each in configuration.parameters.values() if each.type == DURATION]
        raise SpecificationError(
            place,
            f"the timer {timer!r} is no duration of spec/parameters",
            f"name one of: {', '.join(known)}",
        )
    assert isinstance(parameter.default, int), "a duration has a default"
    return parameter.default


def _roles(head: Tree) -> Iterator[tuple[str, RoleSpec]]:
    for name, tree in head.trees("roles"):
        tree.only("options", "about")
        options = tree.text("options")
        if not _CLASS.fullmatch(options):
            raise SpecificationError(
                tree.place_of("options"), f"{options!r} names no class", "write words with capitals, joined"
            )
        check_word(options, tree.place_of("options"))
        yield name, RoleSpec(name, options, tree.text("about"))


def _idle(head: Tree, roles: Mapping[str, RoleSpec]) -> Iterator[Idle]:
    for name, tree in head.trees("without_effect"):
        tree.only("roles", "default")
        default = tree.items.get("default")
        text = default.text if isinstance(default, Scalar) else ""
        yield Idle(name, _known_roles(tree, "roles", roles), text)


def _known_roles(tree: Tree, key: str, roles: Mapping[str, RoleSpec]) -> tuple[str, ...]:
    names = tree.texts(key)
    for name in names:
        if name not in roles:
            raise SpecificationError(
                tree.place_of(key), f"no role is named {name!r}", f"use one of: {', '.join(roles)}"
            )
    return names


class _Group:
    def __init__(self, tree: Tree, roles: Mapping[str, RoleSpec]) -> None:
        self._tree = tree
        self._known = roles
        tree.only("title", "roles", "ignored_by", "options", "parameters")
        self._roles = _known_roles(tree, "roles", roles)
        self._ignored_by = _known_roles(tree, "ignored_by", roles)

    def group(self) -> Group:
        options = self._tree.tree("options")
        options.only("class", "field")
        kind, field = options.text("class", ""), options.text("field", "")
        if bool(kind) != bool(field) or (kind and not (_CLASS.fullmatch(kind) and _FIELD.fullmatch(field))):
            raise SpecificationError(
                self._tree.place_of("options"),
                "options need a class and a field",
                "write options: {class: RemotingLimits, field: limits}",
            )
        for name, key in ((kind, "class"), (field, "field")):
            check_word(name, options.place_of(key))
        parameters = tuple(self._parameter(name, tree) for name, tree in self._tree.trees("parameters"))
        if kind and any(each.roles != self._roles or each.defaults for each in parameters):
            raise SpecificationError(
                self._tree.place_of("options"),
                f"the parameters of {kind} differ by role",
                "let all of them have the roles of the file and one default",
            )
        for each in parameters:
            if each.not_below:
                _check_not_below(each, parameters)
        return Group(self._tree.text("title"), self._tree.place, parameters, kind, field)

    def _parameter(self, name: str, tree: Tree) -> ParameterSpec:
        tree.only(*_KEYS)
        place = self._tree.tree("parameters").place_of(name)
        if not _NAME.fullmatch(name):
            raise SpecificationError(place, f"{name!r} is no name", "write it as in files: haListenPort")
        for word in name.split("."):
            check_word(word, place)
        kind = tree.text("type")
        if kind not in TYPES:
            raise SpecificationError(
                tree.place_of("type"),
                f"{kind!r} is no type of a parameter",
                f"use one of: {', '.join(TYPES)}",
            )
        roles = _known_roles(tree, "roles", self._known) or self._roles
        ignored_by = _known_roles(tree, "ignored_by", self._known)
        if "ignored_by" not in tree.items:
            ignored_by = self._ignored_by
        both = sorted(set(roles) & set(ignored_by))
        if both or not roles:
            fault = f"{name} has an effect on {both[0]} and none" if both else f"{name} is of no role"
            raise SpecificationError(place, fault, "name every role once, under roles or ignored_by")
        bounds = _bounds(tree, kind)
        read = _reader(tree, kind, bounds)
        defaults = {role: read(role, tree.tree("defaults")) for role in tree.tree("defaults").items}
        for role in defaults:
            if role not in roles:
                raise SpecificationError(
                    tree.tree("defaults").place_of(role),
                    f"{name} is no parameter of {role!r}",
                    "add the role",
                )
        default = read("default", tree) if "default" in tree.items else None
        if kind == DURATION and default is None:
            raise SpecificationError(place, f"the duration {name} has no default", "write default: 5 s")
        values = tree.texts("values")
        if len(set(values)) < len(values):
            raise SpecificationError(
                tree.place_of("values"), f"{name} has a value twice", "name every one once"
            )
        return ParameterSpec(
            name,
            place,
            tree.text("about"),
            kind,
            default,
            defaults,
            roles,
            ignored_by,
            *bounds,
            values=values,
            aliases=tree.texts("aliases"),
            origins=tree.texts("origin"),
            deviates=tree.text("deviates", ""),
            releases=parse_versions(tree.text("releases", ""), tree.place_of("releases")),
            timer_of=tree.texts("timer_of"),
            changes=tree.flag("changes"),
            not_below=tree.text("not_below", ""),
        )


def _check_not_below(parameter: ParameterSpec, others: Sequence[ParameterSpec]) -> None:
    """Both are numbers of the same roles, and their defaults hold to it."""
    name = parameter.not_below
    other = next((each for each in others if each.name == name), None)
    if other is None or parameter.type not in NUMBERS or other.type != parameter.type:
        fault = f"{parameter.name} cannot be compared with {name!r}"
        raise SpecificationError(parameter.place, fault, "name a number of the same type and file")
    if parameter.roles != other.roles or parameter.changes != other.changes:
        fault = f"{parameter.name} and {name} are not of the same roles, or one alone may be changed"
        raise SpecificationError(parameter.place, fault, "declare both alike")
    for role in parameter.roles:
        least, found = other.default_of(role), parameter.default_of(role)
        if not isinstance(found, int) or not isinstance(least, int) or found < least:
            fault = f"the default of {parameter.name} is below that of {name}"
            raise SpecificationError(parameter.place, fault, "give both a default, and this one no smaller")


def _bounds(tree: Tree, kind: str) -> tuple[int, int]:
    low, high = _BOUNDS.get(kind, (None, None))
    if kind not in NUMBERS:
        for key in ("minimum", "maximum"):
            if key in tree.items:
                raise SpecificationError(tree.place_of(key), f"a {kind} has no {key}", "drop it")
        return 0, 0
    low, high = (_bound(tree, key, kind, other) for key, other in (("minimum", low), ("maximum", high)))
    if low > high:
        raise SpecificationError(tree.place_of("minimum"), "no value is allowed", "put the smaller first")
    return low, high


def _bound(tree: Tree, key: str, kind: str, other: int | None) -> int:
    if key not in tree.items and other is not None:
        return other
    return _duration(tree, key) if kind == DURATION else _integer(tree, key)


def _integer(tree: Tree, key: str) -> int:
    node = tree.items.get(key)
    if not isinstance(node, Scalar) or isinstance(node.value, bool) or not isinstance(node.value, int):
        raise SpecificationError(tree.place_of(key), f"{key} is no number", f"write {key}: 1")
    return node.value


def _duration(tree: Tree, key: str) -> int:
    text = tree.text(key, "")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise SpecificationError(tree.place_of(key), f"{text!r} is no duration", f"write {key}: 20 s")
    return int(match["count"]) * _MILLISECONDS[match["unit"]]


def _reader(tree: Tree, kind: str, bounds: tuple[int, int]) -> Callable[[str, Tree], Value]:
    """What reads a default of this type from a key of a mapping. Raises SpecificationError."""
    values = tree.texts("values")
    if bool(values) != (kind == "choice"):
        raise SpecificationError(
            tree.place,
            f"a {kind} {'has no' if values else 'needs'} values",
            "write values: [A, B] at a choice",
        )

    def read(key: str, holder: Tree) -> Value:
        place = holder.place_of(key)
        if kind in NUMBERS:
            number = _duration(holder, key) if kind == DURATION else _integer(holder, key)
            if not bounds[0] <= number <= bounds[1]:
                raise SpecificationError(
                    place, f"the default {number} is not allowed", f"choose {bounds[0]} to {bounds[1]}"
                )
            return number
        if kind == "flag":
            holder.text(key)
            return holder.flag(key)
        text = holder.text(key)
        if kind == "choice" and text not in values:
            raise SpecificationError(
                place, f"the default {text!r} is not allowed", f"choose {' or '.join(values)}"
            )
        if kind == "word" and not text:
            raise SpecificationError(place, "a word is not empty", "choose a text, or make its type text")
        if kind == "addresses":
            return tuple(_address(part, place) for part in text.split(";") if part)
        if kind == "peers" and text:
            raise SpecificationError(place, "peers have no default but none", "write default: ''")
        return text if kind != "peers" else ()

    return read


def _address(text: str, place: Place) -> str:
    if not _ADDRESS.fullmatch(text):
        raise SpecificationError(place, f"{text!r} is no address", "write HOST:PORT")
    return text


def _check_names(groups: Iterable[Group], idle: Iterable[Idle], head: Tree) -> None:
    seen: dict[str, Place] = {}
    for each in (parameter for group in groups for parameter in group.parameters):
        for name in (each.name, *each.aliases):
            if name in seen:
                raise SpecificationError(
                    each.place, f"the name {name} stands for two parameters", f"see {seen[name]}"
                )
            seen[name] = each.place
    for one in idle:
        if one.name in seen:
            place = head.tree("without_effect").place_of(one.name)
            raise SpecificationError(place, f"{one.name} is a parameter", f"see {seen[one.name]}")


def _check_fields(groups: Iterable[Group]) -> None:
    """No two parameters have one name in Python, and no field holds two groups."""
    seen: dict[str, Place] = {}
    for group in groups:
        names = [(each.place, field_name(each)) for each in group.parameters]
        for place, name in [*names, *([(group.place, group.field)] if group.field else [])]:
            if name in seen:
                raise SpecificationError(place, f"{name} is there twice in Python", f"see {seen[name]}")
            seen[name] = place
