"""Hypothesis strategies that make any message of the generated codecs from its annotations."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from replispec.wire.rocketmq import broker, codes, controller, ha, remoting, store

MODULES = (remoting, controller, broker, ha, store)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\n"), max_size=12)
NAME = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
# Attributes whose range the specification narrows.
Ranges = Mapping[tuple[str, str], st.SearchStrategy[Any]]
RANGES: Ranges = {
    ("RemotingFrame", "serialize_type"): st.integers(0, 1),
    ("RemotingHeader", "code"): INT16,
    ("RemotingHeader", "version"): INT16,
    ("RemotingHeader", "language"): st.sampled_from([each.name for each in codes.LanguageCode]),
    ("RemotingHeader", "serialize_type_current_rpc"): st.none(),
    ("HaHandshakeAddress", "address"): NAME,
    ("HaHandshakeId", "broker_id"): st.integers(0, (1 << 32) - 1),
    ("HaLegacyReport", "max_offset"): st.integers(0, (1 << 63) - 1),
    ("HaLegacyTransferHeader", "offset"): st.integers(0, (1 << 63) - 1),
    ("LogRecord", "magic"): st.just(int(codes.LogMagic.MESSAGE_V1)),
    ("LogRecord", "sys_flag"): st.just(0),
    ("LogRecord", "born_ip"): st.binary(min_size=4, max_size=4),
    ("LogRecord", "store_ip"): st.binary(min_size=4, max_size=4),
    ("LogRecord", "tail"): st.just(b""),
    ("OffsetMessageId", "store_ip"): st.binary(min_size=4, max_size=4),
    ("OffsetMessageIdV6", "store_ip"): st.binary(min_size=16, max_size=16),
    ("SyncStateSet", "addresses"): st.none(),  # one key with broker_ids
    ("EpochFile", "crc"): st.none(),
    ("FlushedRuns", "crc"): st.none(),
    ("AskedSyncStateSet", "crc"): st.none(),
    **{("FlushedRun", each): st.integers(0, (1 << 63) - 1) for each in ("start", "end", "crc")},
    ("EpochFileEntry", "epoch"): st.integers(0, (1 << 31) - 1),  # the separator is the minus sign
}


def messages(kind: type[Any], ranges: Ranges = RANGES) -> st.SearchStrategy[Any]:
    """Any message of this class that can be written, without unknown keys; `ranges` narrows attributes."""
    hints = typing.get_type_hints(kind)
    names = [each.name for each in dataclasses.fields(kind) if each.name != "unknown"]
    values = {
        name: ranges[key] if (key := (kind.__name__, name)) in ranges else _values(hints[name], ranges)
        for name in names
    }
    return st.builds(kind, **values)


def _values(hint: Any, ranges: Ranges) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        some = [_values(each, ranges) for each in arguments if each is not type(None)]
        return st.none() | st.one_of(some)
    if origin is list:
        return st.lists(_values(arguments[0], ranges), max_size=3)
    if origin is dict:
        return st.dictionaries(
            NAME if arguments[0] is str else INT32, _values(arguments[1], ranges), max_size=3
        )
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return messages(hint, ranges)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: INT32,
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: NAME,
        bytes: st.binary(max_size=40),
        bool: st.booleans(),
    }
    return simple[hint]


def classes(*methods: str, modules: Iterable[ModuleType] = MODULES) -> list[type[Any]]:
    """All generated message classes of these modules that have these methods."""
    found = [
        each
        for module in modules
        for each in vars(module).values()
        if dataclasses.is_dataclass(each) and each.__module__ == module.__name__
    ]
    own = [each for each in found if isinstance(each, type) and all(hasattr(each, name) for name in methods)]
    return list(dict.fromkeys(own))
