"""The page of all parameters, made from the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from replispec.runtime.configuration.kinds import ROLES, Parameter
from replispec.runtime.rocketmq import parameters

_CLASSES: Final = {
    "B": "BrokerConfig",
    "C": "ControllerConfig",
    "N": "NettyServerConfig",
    "R": "NamesrvConfig",
    "S": "MessageStoreConfig",
}
_HEAD: Final = """\
# Configuration

A file for `replispec ROLE -c FILE` is a properties file in RocketMQ's parameter names: `NAME=VALUE` a line,
`#` begins a comment. `--set NAME=VALUE` counts more than the file; `--print-config` shows what holds. A value
that is not allowed ends the process with exit code 2 and one line that names the parameter, the value and
what is allowed. Names that are not known are noted on standard error and ignored: files of RocketMQ hold
many.

Relative paths are below the working folder, `~` is the user's own. All listeners are on loopback unless
`bindAddress` says otherwise.

This page is made from `replispec.runtime.rocketmq.parameters`; `REWRITE=1 make check
ARGS=tests/runtime/configuration` writes it again.
"""


def document() -> str:
    """The whole page, in Markdown."""
    used = [one for one in parameters.ALL if one.source != "idle"]
    parts = [_HEAD]
    groups = [("Every role", ROLES), ("Broker and learner", parameters.KEEPING)]
    groups += [("Controller and name server", parameters.DECIDING)]
    groups += [("Name server", ("nameserver",)), ("Learner", ("learner",))]
    for title, roles in groups:
        rows = [one for one in used if one.roles == roles]
        parts.append(f"\n## {title}\n\n" + "".join(_table(rows)))
    idle = ", ".join(f"`{one.name}`" for one in parameters.ALL if one.source == "idle")
    parts.append(f"\n## Taken, and without effect\n\n{idle}\n")
    return "".join(parts)


def _table(rows: list[Parameter[Any]]) -> Iterator[str]:
    yield "| parameter | default | allowed | what it does | RocketMQ |\n| --- | --- | --- | --- | --- |\n"
    for one in rows:
        cells = (f"`{one.name}`", _default(one), one.allowed, one.what, _source(one))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _default(one: Parameter[Any]) -> str:
    if one.default is None:
        return "must be given"
    own = [f"{role}: `{value}`" for role, value in sorted(one.defaults.items())]
    return ", ".join([f"`{one.default}`" if one.default else "empty", *own])


def _source(one: Parameter[Any]) -> str:
    if one.source == "ours":
        return "ours" + (f"; {one.deviates}" if one.deviates else "")
    classes = ", ".join(_CLASSES[name] for name in one.source.split(", "))
    return classes + (f"; its default: {one.deviates}" if one.deviates else "")
