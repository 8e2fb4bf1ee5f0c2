"""From the text of a properties file to typed settings of one role."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from replispec.runtime.configuration.kinds import ConfigurationError, Parameter, Role
from replispec.runtime.configuration.properties import read_properties
from replispec.runtime.rocketmq import parameters

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """What a role is told at its start: `settings[parameters.LISTEN_PORT]` is the value of a parameter.

    `given`: names that were set. `notes`: what of the file has no effect, for people. `others`: texts of
    names that this role does not know.
    """

    role: Role
    given: frozenset[str] = frozenset()
    notes: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    _texts: Mapping[str, str] = field(default_factory=dict)
    _values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, parameter: Parameter[T]) -> T:
        """The value. KeyError for a parameter that this role does not have: a fault of ours."""
        value: T = self._values[parameter.name]
        return value

    def properties(self) -> dict[str, str]:
        """All parameters of the role as texts, defaults included, by name."""
        return dict(self._texts)

    def refuse(self, parameter: Parameter[Any], allowed: str) -> ConfigurationError:
        """The error that a value is not allowed, for checks of several parameters together."""
        return ConfigurationError(parameter.name, self._texts[parameter.name], allowed)


def known(role: Role) -> dict[str, Parameter[Any]]:
    """The parameters of a role, by name."""
    return {one.name: one for one in parameters.ALL if role in one.roles}


def parse(text: str, role: Role, *, overrides: Mapping[str, str] | None = None) -> Settings:
    """The settings of a role from the text of its file; `overrides` count more than the file.

    Names that are not known are noted and left alone: files of RocketMQ hold many. Raises
    ConfigurationError for a value that is not allowed, one that is missing, an unknown override, or a
    text that is no properties file.
    """
    table = known(role)
    written, notes = read_properties(text)
    for name, value in (overrides or {}).items():
        if name not in table:
            near = _nearest(name, table)
            raise ConfigurationError(
                name, value, f"a parameter of a {role}" + (f"; is it {near}?" if near else "")
            )
        written[name] = value
    values: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, parameter in table.items():
        held = written.get(name, parameter.default_of(role))
        if held is None:
            raise ConfigurationError(name, "", f"{parameter.allowed} (it must be given)")
        values[name], texts[name] = parameter.value(held), held
    others = {name: value for name, value in written.items() if name not in table}
    notes += [_note(name, role, table) for name in others]
    notes += [
        f"{name} has no effect here" for name in written if name in table and table[name].source == "idle"
    ]
    return Settings(role, frozenset(written) & frozenset(table), tuple(notes), others, texts, values)


def _note(name: str, role: Role, table: Mapping[str, Parameter[Any]]) -> str:
    if any(one.name == name for one in parameters.ALL):
        return f"{name} is no parameter of a {role}: ignored"
    near = _nearest(name, table)
    return f"{name} is not known: ignored" + (f" (is it {near}?)" if near else "")


def _nearest(name: str, table: Mapping[str, Parameter[Any]]) -> str | None:
    return next(iter(difflib.get_close_matches(name, table, n=1, cutoff=0.8)), None)
