"""Messages of ours as plain trees, and the way from a tree to each runtime of protobuf and back.

A tree is a dict of field names to values: only what is set, enums as numbers, messages as trees, maps as
dicts. Two runtimes agree when they give the same tree.
"""

from collections.abc import Iterator
from typing import Any

import betterproto
from google.protobuf import message as official
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

from replispec.adapter.v1 import adapter_pb2
from replispec.adapter.v1 import messages as adapter
from replispec.event.v1 import event_pb2
from replispec.event.v1 import messages as event
from replispec.trace.v1 import messages as trace
from replispec.trace.v1 import trace_pb2

Tree = dict[str, Any]
Pair = tuple[type[betterproto.Message], type[official.Message]]
PACKAGES = {"adapter": (adapter, adapter_pb2), "event": (event, event_pb2), "trace": (trace, trace_pb2)}


def _pairs() -> Iterator[tuple[str, Pair]]:
    for package, (dataclasses, module) in PACKAGES.items():
        for name in sorted(module.DESCRIPTOR.message_types_by_name):
            yield f"{package}.{name}", (getattr(dataclasses, name), getattr(module, name))


# Every message of every package of ours: "package.Message" -> (class of betterproto, official class).
PAIRS: dict[str, Pair] = dict(_pairs())

_NUMBERS = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    # Numbers without a name, too: a newer peer may have more of them.
    FieldDescriptor.TYPE_ENUM: (0, 20),
}


def _values(item: FieldDescriptor) -> st.SearchStrategy[Any]:
    if item.type in _NUMBERS:
        low, high = _NUMBERS[item.type]
        return st.one_of(st.sampled_from([low, 0, 1, high]), st.integers(low, high))
    if item.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if item.type == FieldDescriptor.TYPE_STRING:
        return st.text(max_size=8)
    if item.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=8)
    return trees(item.message_type)


def _is_map(item: FieldDescriptor) -> bool:
    return item.message_type is not None and item.message_type.GetOptions().map_entry


@st.composite
def trees(draw: st.DrawFn, kind: Any) -> Tree:
    """Any tree of the message with this descriptor.

    The keys of maps are not empty: see what betterproto's seam refuses.
    """
    tree: Tree = {}
    chosen = {
        oneof.name: draw(st.sampled_from([None, *(item.name for item in oneof.fields)]))
        for oneof in kind.oneofs
    }
    for item in kind.fields:
        oneof = item.containing_oneof
        if oneof is not None:
            if chosen[oneof.name] == item.name:
                tree[item.name] = draw(_values(item))
        elif _is_map(item):
            key, value = item.message_type.fields
            held = draw(st.dictionaries(_values(key).filter(bool), _values(value), max_size=3))
            if held:
                tree[item.name] = held
        else:
            found = draw(st.lists(_values(item), max_size=4) if item.is_repeated else _values(item))
            if found:
                tree[item.name] = found
    return tree


def to_betterproto(kind: type[betterproto.Message], tree: Tree) -> betterproto.Message:
    """The message that the tree describes."""
    known = betterproto.ProtoClassMetadata(kind)

    def made(name: str, value: Any, mapped: bool = False) -> Any:
        if not isinstance(value, dict):
            return value
        return to_betterproto(known.cls_by_field[f"{name}.value" if mapped else name], value)

    values: Tree = {}
    for name, value in tree.items():
        if known.meta_by_field_name[name].proto_type == "map":
            values[name] = {key: made(name, each, mapped=True) for key, each in value.items()}
        else:
            many = isinstance(value, list)
            values[name] = [made(name, each) for each in value] if many else made(name, value)
    return kind(**values)


def from_betterproto(message: betterproto.Message) -> Tree:
    """The tree that describes the message."""
    known = betterproto.ProtoClassMetadata(type(message))
    tree: Tree = {}
    for name, meta in known.meta_by_field_name.items():
        if meta.group and not meta.optional:
            chosen, value = betterproto.which_one_of(message, meta.group)
            present = chosen == name
        else:
            value = getattr(message, name)
            present = value is not None if meta.optional else bool(value)
        if present:
            tree[name] = _plain(value)
    return tree


def _plain(value: Any) -> Any:
    if isinstance(value, betterproto.Message):
        return from_betterproto(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return int(value) if isinstance(value, betterproto.Enum) else value


def to_official(kind: type[official.Message], tree: Tree) -> Any:
    """The message that the tree describes."""
    message: Any = kind()
    for name, value in tree.items():
        item: Any = kind.DESCRIPTOR.fields_by_name[name]
        if _is_map(item):
            _fill_map(getattr(message, name), value)
        elif item.message_type is None:
            if item.is_repeated:
                getattr(message, name).extend(value)
            else:
                setattr(message, name, value)
        else:
            held = message_factory.GetMessageClass(item.message_type)
            if item.is_repeated:
                getattr(message, name).extend(to_official(held, each) for each in value)
            else:
                getattr(message, name).CopyFrom(to_official(held, value))
    return message


def _fill_map(target: Any, values: Tree) -> None:
    for key, value in values.items():
        if isinstance(value, dict):
            target[key].CopyFrom(to_official(type(target[key]), value))
        else:
            target[key] = value


def from_official(message: Any) -> Tree:
    """The tree that describes the message."""
    tree: Tree = {}
    for item, value in message.ListFields():
        if _is_map(item):
            inner = item.message_type.fields_by_name["value"].message_type
            tree[item.name] = {key: from_official(each) if inner else each for key, each in value.items()}
        elif item.message_type is not None:
            many = item.is_repeated
            tree[item.name] = [from_official(each) for each in value] if many else from_official(value)
        else:
            tree[item.name] = list(value) if item.is_repeated else value
    return tree
