"""Parameters as the compiler sees them: what may be configured of which role, and its default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.compiler.model.message import Place, VersionRange

DURATION: Final = "duration"
"""The type of parameters that are a time."""
Value = str | int | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One parameter. `default` None: it must be given; `defaults` are those of single roles. Durations are
    milliseconds. `origins` are the classes that hold it in the implementation whose files are taken,
    `deviates` says what its default is there. `timer_of` names the machines whose timer it is. `changes`:
    it may be changed while a process runs. Roles in `ignored_by` take it without effect. `not_below` names
    another one of the same file: a smaller value than its is refused, and the default is never smaller.
    """

    name: str
    place: Place
    about: str
    type: str
    default: Value | None
    defaults: Mapping[str, Value]
    roles: tuple[str, ...]
    ignored_by: tuple[str, ...] = ()
    minimum: int = 0
    maximum: int = 0
    values: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    deviates: str = ""
    releases: VersionRange | None = None
    timer_of: tuple[str, ...] = ()
    changes: bool = False
    not_below: str = ""

    def default_of(self, role: str) -> Value | None:
        """The default for a role."""
        return self.defaults.get(role, self.default)


@dataclass(frozen=True, slots=True)
class Group:
    """The parameters of one file. With `options` they form a class of that name, which the options of a role
    hold in `field`."""

    title: str
    place: Place
    parameters: tuple[ParameterSpec, ...]
    options: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """Who is configured; `options` is the class of its options."""

    name: str
    options: str
    about: str


@dataclass(frozen=True, slots=True)
class Idle:
    """A name that files hold and that has no effect; `default` is shown when it is not given."""

    name: str
    roles: tuple[str, ...]
    default: str


@dataclass(frozen=True, slots=True)
class ConfigurationSpec:
    """All that may be configured of a family's roles."""

    roles: Mapping[str, RoleSpec] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    idle: tuple[Idle, ...] = ()

    @property
    def parameters(self) -> dict[str, ParameterSpec]:
        """All parameters by name, in the order of the files."""
        return {each.name: each for group in self.groups for each in group.parameters}

    def idle_of(self, role: str) -> dict[str, str]:
        """What a role takes without effect: name -> text that is shown when it is not given."""
        found = {each.name: each.default for each in self.idle if role in each.roles}
        return found | {each.name: "" for each in self.parameters.values() if role in each.ignored_by}


def field_name(parameter: ParameterSpec) -> str:
    """The name of a parameter in Python: its own in lower case, durations with their unit."""
    words = (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", parameter.name)
        .lower()
        .replace(".", "_")
    )
    if parameter.type == DURATION:
        words = f"{words.removesuffix('_millis').removesuffix('_mills').removesuffix('_ms')}_ms"
    return words
