"""What clients ask for, read from their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from replispec.metastore.zookeeper.core.deciding import look_at
from replispec.metastore.zookeeper.core.values import (
    Change,
    CheckVersion,
    Create,
    Delete,
    SetData,
    TreeRefusal,
    TreeRefused,
)
from replispec.wire.zookeeper.codes import CreateFlags, OpCode, Permission
from replispec.wire.zookeeper.constants import EVERYBODY_ID, EVERYBODY_SCHEME
from replispec.wire.zookeeper.machines.metastore_operation import ChangeAsked, CreateAsked
from replispec.wire.zookeeper.operations import (
    AccessEntry,
    CheckVersionRequest,
    CreateRequest,
    DeleteRequest,
    MultiOperation,
    SetDataRequest,
)

_EPHEMERAL: Final = frozenset({CreateFlags.EPHEMERAL, CreateFlags.EPHEMERAL_SEQUENTIAL})
_SEQUENTIAL: Final = frozenset({CreateFlags.PERSISTENT_SEQUENTIAL, CreateFlags.EPHEMERAL_SEQUENTIAL})
_FLAGS: Final = {int(each): (each in _EPHEMERAL, each in _SEQUENTIAL) for each in CreateFlags}
"""Whether a node is ephemeral and whether it is sequential."""


def create_of(said: CreateRequest) -> Create:
    """The node that is wanted. Raises Refused."""
    is_everybodys = bool(said.acl) and all(map(_is_for_everybody, said.acl or ()))
    look_at(CreateAsked(said.path is not None, said.flags in _FLAGS, is_everybodys))
    return Create(said.path or "", said.data, *_FLAGS[said.flags])


def _path_of(said: str | None) -> str:
    """The path of a node that is changed or checked. Raises Refused for none."""
    look_at(ChangeAsked(said is not None))
    return said or ""


def delete_of(said: DeleteRequest) -> Delete:
    """The node that is to go. Raises Refused."""
    return Delete(_path_of(said.path), said.version)


def set_data_of(said: SetDataRequest) -> SetData:
    """What a node is to hold. Raises Refused."""
    return SetData(_path_of(said.path), said.data, said.version)


def check_of(said: CheckVersionRequest) -> CheckVersion:
    """The version that a node must have. Raises Refused."""
    return CheckVersion(_path_of(said.path), said.version)


CHANGES: Final[Mapping[int, Callable[[Any], Change]]] = {
    OpCode.CREATE: create_of,
    OpCode.DELETE: delete_of,
    OpCode.SET_DATA: set_data_of,
}
"""What changes one node, by the type of the request."""


def operation_of(said: MultiOperation) -> Change:
    """One change of many. Raises Refused."""
    if said.create is not None:
        return create_of(said.create)
    if said.set_data is not None:
        return set_data_of(said.set_data)
    if said.delete is not None:
        return delete_of(said.delete)
    assert said.check is not None, "an operation of none of the types"
    return check_of(said.check)


def operations_of(said: Sequence[MultiOperation]) -> tuple[tuple[Change, ...], TreeRefusal | None]:
    """The changes before the first one that is refused as it stands, and its refusal."""
    changes: list[Change] = []
    for each in said:
        try:
            changes.append(operation_of(each))
        except TreeRefused as refused:
            return tuple(changes), refused.refusal
    return tuple(changes), None


def _is_for_everybody(entry: AccessEntry) -> bool:
    return (
        entry.permissions == Permission.ALL
        and entry.scheme == EVERYBODY_SCHEME
        and entry.expression == EVERYBODY_ID
    )
