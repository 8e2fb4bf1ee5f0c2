"""Two modules of a family: `options`, what each role is made of, and `parameters`, how texts become that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.expressions import strings
from replispec.compiler.emit.python.tree import (
    ABC,
    DATACLASSES,
    PRIMITIVES,
    TYPING,
    Class,
    Comment,
    Constant,
    Module,
    Names,
    Node,
    Ref,
)
from replispec.compiler.model.parameter import (
    ConfigurationSpec,
    Group,
    ParameterSpec,
    RoleSpec,
    Value,
    field_name,
)

_PARAMETERS = Names(f"{PRIMITIVES}.parameters")
_OPTIONS = f"{DATACLASSES.dataclass}(frozen=True, slots=True, kw_only=True)"
_TYPES = {
    "flag": "bool",
    "text": "str",
    "word": "str",
    "path": "str",
    "secret": "str",
    "addresses": "tuple[str, ...]",
    "peers": "tuple[tuple[str, str], ...]",
}
_BOUNDED = {
    "number": _PARAMETERS.number,
    "bytes": _PARAMETERS.size,
    "duration": _PARAMETERS.duration,
}


def options_text(configuration: ConfigurationSpec, family: str, sources: Mapping[str, bytes]) -> str:
    """The module with the frozen options of every role, defaults included."""
    about = (
        f"Options of the roles of {family}, with the defaults of its parameters.\n\n"
        "Durations are milliseconds, in fields that end in _ms; sizes are bytes."
    )
    nodes: list[Node] = [
        _class(group.options, group.title, [_attribute(each, each.default) for each in group.parameters])
        for group in configuration.groups
        if group.options
    ]
    nodes += [_role_options(role, configuration) for role in configuration.roles.values()]
    return Module(f"replispec.wire.{family}.options", certificate(sources), about, nodes).text()


def _class(name: str, about: str, body: list[Constant]) -> Class:
    return Class(name, f"{about.rstrip('.')}.", decorators=[_OPTIONS], body=body)


def _attribute(parameter: ParameterSpec, default: Value | None) -> Constant:
    kind = _TYPES.get(parameter.type, "int")
    if parameter.type == "choice":
        kind = f"{TYPING.Literal}[{', '.join(map(repr, parameter.values))}]"
    return Constant(field_name(parameter), "" if default is None else _literal(default), kind)


def _literal(value: Value) -> str:
    return strings(value) if isinstance(value, tuple) else repr(value)


def _role_options(role: RoleSpec, configuration: ConfigurationSpec) -> Class:
    own = [
        (each, each.default_of(role.name))
        for group in configuration.groups
        if not group.options
        for each in group.parameters
        if role.name in each.roles
    ]
    body = [_attribute(*each) for each in sorted(own, key=lambda one: one[1] is not None)]
    body += [
        Constant(group.field, f"{group.options}()", group.options)
        for group in _groups_of(role, configuration)
    ]
    idle = configuration.idle_of(role.name)
    if idle:
        body.append(Constant("without_effect", repr(tuple(idle.items())), "tuple[tuple[str, str], ...]"))
    return _class(role.options, f"Parameters of a {role.name}", body)


def _groups_of(role: RoleSpec, configuration: ConfigurationSpec) -> list[Group]:
    """The groups that the options of a role hold as objects of their own."""
    return [
        group
        for group in configuration.groups
        if group.options and any(role.name in each.roles for each in group.parameters)
    ]


def parameters_text(configuration: ConfigurationSpec, family: str, sources: Mapping[str, bytes]) -> str:
    """The module with every parameter; which role has which follows from the options."""
    about = f"Every parameter of the roles of {family}, and what may be configured of each role."
    nodes = list(_parameter_nodes(configuration, f"replispec.wire.{family}.options"))
    return Module(f"replispec.wire.{family}.parameters", certificate(sources), about, nodes).text()


def _parameter_nodes(configuration: ConfigurationSpec, options: str) -> Iterator[Node]:
    final = str(TYPING.Final)
    for group in configuration.groups:
        yield Comment(group.title)
        yield from (_constant(each, group) for each in group.parameters)
    names = ", ".join(map(constant_name, configuration.parameters.values()))
    yield Constant("PARAMETERS", f"({names},)", final, "All of them, in the order of the specification.")
    roles = configuration.roles.values()
    classes = [str(Ref(options, role.options)) for role in roles]
    named = f"{_PARAMETERS.names_known}(PARAMETERS, {', '.join(classes)})"
    yield Constant("_KNOWN", named, final)
    for role, held in zip(roles, classes, strict=True):
        made = f"{_PARAMETERS.role_parameters}({role.name!r}, {held}, PARAMETERS, _KNOWN)"
        yield Constant(role.name.upper(), made, final)
    rows = ", ".join(f"{role.name!r}: {role.name.upper()}" for role in roles)
    kind = f"{final}[{ABC.Mapping}[str, {_PARAMETERS.RoleParameters}[{TYPING.Any}]]]"
    yield Constant("ROLES", f"{{{rows}}}", kind, "What may be configured of each role, by its name.")


def constant_name(parameter: ParameterSpec) -> str:
    """The name of a parameter's constant."""
    return field_name(parameter).upper()


def _constant(parameter: ParameterSpec, group: Group) -> Constant:
    parts = [repr(parameter.name), repr(field_name(parameter)), _kind(parameter)]
    if group.field:
        parts.append(f"group={group.field!r}")
    if parameter.aliases:
        parts.append(f"aliases={strings(parameter.aliases)}")
    if parameter.changes:
        parts.append("changes=True")
    if parameter.not_below:
        parts.append(f"not_below={parameter.not_below!r}")
    made = f"{_PARAMETERS.Parameter}({', '.join(parts)})"
    return Constant(constant_name(parameter), made, str(TYPING.Final))


def _kind(parameter: ParameterSpec) -> str:
    if parameter.type == "choice":
        return f"{_PARAMETERS.choice}({', '.join(map(repr, parameter.values))})"
    if parameter.type in _BOUNDED:
        return f"{_BOUNDED[parameter.type]}({parameter.minimum}, {parameter.maximum})"
    return str(getattr(_PARAMETERS, parameter.type.upper()))
