"""Two modules of a family: `options`, what each role is made of, and `parameters`, how texts become that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import strings
from replispec.compiler.emit.python.machines import docstring
from replispec.compiler.model.parameter import Configuration, Group, Parameter, Role, Value
from replispec.compiler.read.parameters import field_name

_PRIMITIVES = "replispec.runtime.primitives.parameters"
_TYPES = {
    "flag": "bool",
    "text": "str",
    "word": "str",
    "path": "str",
    "addresses": "tuple[str, ...]",
    "peers": "tuple[tuple[str, str], ...]",
}
_BOUNDED = {"number": "number", "bytes": "size", "duration": "duration"}


def options_text(configuration: Configuration, family: str, sources: Mapping[str, bytes]) -> str:
    """The module with the frozen options of every role, defaults included."""
    about = f"Options of the roles of {family}, with the defaults of its parameters."
    lines = [
        *certificate(sources),
        *docstring(about, "Durations are milliseconds, in fields that end in _ms; sizes are bytes."),
        "from __future__ import annotations",
        "",
        "from dataclasses import dataclass",
    ]
    parameters = configuration.parameters.values()
    if any(each.type == "choice" for each in parameters):
        lines.append("from typing import Literal")
    for group in configuration.groups:
        if group.options:
            lines += ["", "", *_class(group.options, group.title)]
            lines += [f"    {line}" for each in group.parameters for line in _attribute(each, each.default)]
    for role in configuration.roles.values():
        lines += ["", "", *_role_options(role, configuration)]
    return "\n".join([*lines, ""])


def _class(name: str, about: str) -> Iterator[str]:
    yield "@dataclass(frozen=True, slots=True, kw_only=True)"
    yield f"class {name}:"
    yield f'    """{about.rstrip(".")}."""'
    yield ""


def _attribute(parameter: Parameter, default: Value | None) -> Iterator[str]:
    kind = _TYPES.get(parameter.type, "int")
    if parameter.type == "choice":
        kind = f"Literal[{', '.join(map(repr, parameter.values))}]"
    yield f"{field_name(parameter)}: {kind}" + ("" if default is None else f" = {_literal(default)}")


def _literal(value: Value) -> str:
    return strings(value) if isinstance(value, tuple) else repr(value)


def _role_options(role: Role, configuration: Configuration) -> Iterator[str]:
    yield from _class(role.options, f"Parameters of a {role.name}")
    own = [
        (each, each.default_of(role.name))
        for group in configuration.groups
        if not group.options
        for each in group.parameters
        if role.name in each.roles
    ]
    for each, default in sorted(own, key=lambda one: one[1] is not None):
        yield from (f"    {line}" for line in _attribute(each, default))
    for group in _groups_of(role, configuration):
        yield f"    {group.field}: {group.options} = {group.options}()"
    idle = configuration.idle_of(role.name)
    if idle:
        yield f"    without_effect: tuple[tuple[str, str], ...] = {tuple(idle.items())!r}"


def _groups_of(role: Role, configuration: Configuration) -> list[Group]:
    """The groups that the options of a role hold as objects of their own."""
    return [
        group
        for group in configuration.groups
        if group.options and any(role.name in each.roles for each in group.parameters)
    ]


def parameters_text(configuration: Configuration, family: str, sources: Mapping[str, bytes]) -> str:
    """The module with every parameter, and which of them each role has."""
    parameters = configuration.parameters.values()
    kinds = {_kind(each).partition("(")[0] for each in parameters}
    options = sorted({role.options for role in configuration.roles.values()} | _group_classes(configuration))
    lines = [
        *certificate(sources),
        *docstring(f"Every parameter of the roles of {family}, and which role has which."),
        "from __future__ import annotations",
        "",
        "from types import MappingProxyType",
        "from typing import Any, Final",
        "",
        f"from {_PRIMITIVES} import {', '.join(sorted(kinds | {'Parameter', 'RoleParameters'}))}",
        f"from replispec.wire.{family}.options import {', '.join(options)}",
    ]
    for group in configuration.groups:
        lines += ["", f"# {group.title}", ""]
        lines += [line for each in group.parameters for line in _constant(each, group)]
    lines.append("")
    for role in configuration.roles.values():
        lines += ["", *_role(role, configuration)]
    named = ", ".join(f'"{name}": {name.upper()}' for name in configuration.roles)
    lines += [
        "",
        f"ROLES: Final[MappingProxyType[str, RoleParameters[Any]]] = MappingProxyType({{{named}}})",
        '"""What may be configured of each role, by its name."""',
    ]
    return "\n".join([*lines, ""])


def constant_name(parameter: Parameter) -> str:
    """The name of a parameter in the module of all parameters."""
    return field_name(parameter).upper()


def _constant(parameter: Parameter, group: Group) -> Iterator[str]:
    parts = [repr(parameter.name), repr(field_name(parameter)), _kind(parameter), repr(parameter.about)]
    if group.field:
        parts.append(f"group={group.field!r}")
    if parameter.aliases:
        parts.append(f"aliases={strings(parameter.aliases)}")
    if parameter.changes:
        parts.append("changes=True")
    yield f"{constant_name(parameter)}: Final = Parameter({', '.join(parts)})"


def _kind(parameter: Parameter) -> str:
    if parameter.type == "choice":
        return f"choice({', '.join(map(repr, parameter.values))})"
    if parameter.type in _BOUNDED:
        return f"{_BOUNDED[parameter.type]}({parameter.minimum}, {parameter.maximum})"
    return parameter.type.upper()


def _group_classes(configuration: Configuration) -> set[str]:
    return {group.options for group in configuration.groups if group.options}


def _role(role: Role, configuration: Configuration) -> Iterator[str]:
    mine = [each for each in configuration.parameters.values() if role.name in each.roles]
    idle = set(configuration.idle_of(role.name))
    every = {*configuration.parameters, *(one.name for one in configuration.idle)}
    elsewhere = sorted(every - {each.name for each in mine} - idle)
    yield f"{role.name.upper()}: Final = RoleParameters("
    yield f"    {role.name!r},"
    yield f"    {role.options},"
    yield f"    ({''.join(f'{constant_name(each)}, ' for each in mine)}),"
    groups = ", ".join(f"{group.field!r}: {group.options}" for group in _groups_of(role, configuration))
    yield f"    groups=MappingProxyType({{{groups}}}),"
    yield f"    elsewhere=frozenset({elsewhere!r})," if elsewhere else "    elsewhere=frozenset(),"
    yield ")"
