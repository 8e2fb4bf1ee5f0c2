"""The Markdown page of all parameters."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.parameter import ConfigurationSpec, ParameterSpec, Value

_HEAD = ("parameter", "default", "allowed", "what it does", "origin")


def parameters_document(configuration: ConfigurationSpec, sources: Mapping[str, bytes]) -> str:
    """One table for each file of parameters, then what is taken without effect."""
    lines = [*banner(sources), "# Parameters", ""]
    roles = [(each.name, each.about) for each in configuration.roles.values()]
    lines += table(("role", "what it is"), roles)
    for group in configuration.groups:
        shared = group.parameters[0].roles
        rows = [_row(each, shared) for each in group.parameters]
        lines += [f"## {group.title}", f"Of {_listed(shared)}.", "", *table(_HEAD, rows)]
    lines += ["## Taken, and without effect"]
    rows = [
        (role, ", ".join(f"`{name}`" for name in configuration.idle_of(role))) for role in configuration.roles
    ]
    return "\n".join([*lines, *table(("role", "parameters"), rows)])


def _row(parameter: ParameterSpec, shared: tuple[str, ...]) -> tuple[str, ...]:
    about = [parameter.about]
    if parameter.roles != shared:
        about.append(f"Only of {_listed(parameter.roles)}.")
    if parameter.not_below:
        about.append(f"Not below `{parameter.not_below}`, which it is at least by default.")
    if parameter.timer_of:
        links = ", ".join(f"[{each}](machines/{each}.md)" for each in parameter.timer_of)
        about.append(f"A timer of {links}.")
    if parameter.changes:
        about.append("May be changed while the process runs.")
    names = " or ".join(f"`{each}`" for each in (parameter.name, *parameter.aliases))
    return names, _default(parameter), _allowed(parameter), " ".join(about), _origin(parameter)


def _default(parameter: ParameterSpec) -> str:
    if parameter.default is None:
        return "must be given"
    own = [f"{role}: {_value(value)}" for role, value in sorted(parameter.defaults.items())]
    return ", ".join([_value(parameter.default), *own])


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    text = ";".join(value) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else "empty"


def _allowed(parameter: ParameterSpec) -> str:
    bounds = f"{parameter.minimum} to {parameter.maximum}"
    words = {
        "flag": "true or false",
        "text": "one line of text, or empty",
        "word": "a text that is not empty",
        "path": "a path, in one line",
        "secret": "one line of text, or empty",
        "choice": " or ".join(parameter.values),
        "addresses": "HOST:PORT, several with ; between them",
        "peers": "ID-HOST:PORT, several with ; between them",
        "number": f"a number, {bounds}",
        "bytes": f"bytes, {bounds}",
        "port": f"a port, {bounds}",
        "duration": f"milliseconds, {bounds}",
    }
    return words[parameter.type]


def _origin(parameter: ParameterSpec) -> str:
    said = ", ".join(parameter.origins) or "ours"
    if parameter.releases is not None:
        said += f" ({parameter.releases})"
    if parameter.deviates:
        said += f"; its default: {parameter.deviates}" if parameter.origins else f"; {parameter.deviates}"
    return said


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
