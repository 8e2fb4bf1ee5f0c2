"""Names of the specification as numbers and types, for the release that a subject speaks."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping

from replispec.runtime.primitives.commands import BodyType, HeaderType
from replispec.runtime.primitives.releases import NamedNumber, Releases
from replispec.runtime.primitives.streams import Stream
from replispec.wire.rocketmq import ha
from replispec.wire.rocketmq.codes import (
    RELEASE_NAMES,
    REQUEST_CODE_NAMES,
    RESPONSE_CODE_NAMES,
    LanguageCode,
    ResponseCode,
    SerializeType,
)
from replispec.wire.rocketmq.commands import (
    REQUEST_BODIES,
    REQUEST_HEADERS,
    RESPONSE_BODIES,
    RESPONSE_HEADERS,
)
from replispec.wire.rocketmq.streams import HA_MASTER, HA_MASTER_5_0_0, HA_REPLICA

IMPLEMENTATION = "apache"  # whose releases the specification counts by
Release = tuple[int, ...]
# The stream of the older form is named by the newest release that writes it.
_PADDED_UNTIL: Release = tuple(map(int, HA_MASTER_5_0_0.name.removeprefix(f"{HA_MASTER.name}_").split("_")))


def parse_release(text: str) -> Release | None:
    """5.1.1 as numbers, None when it is no release."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def release_text(release: Release) -> str:
    """A release with dots."""
    return ".".join(map(str, release))


def known_releases() -> list[Release]:
    """The releases that the specification knows by name, oldest first."""
    return sorted(tuple(map(int, each.name[1:].split("_"))) for each in RELEASE_NAMES)


def fits(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern with * and ?; capitals count."""
    return fnmatch.fnmatchcase(name, pattern)


def release_number(release: Release) -> int:
    """What a header's version says of this release; 0 when the specification has no number for it."""
    wanted = "V" + "_".join(map(str, release))
    return next((each.number for each in RELEASE_NAMES if each.name == wanted), 0)


def number_of(name: str, table: Iterable[NamedNumber], release: Release | None) -> int | None:
    """The number that a name has in a release (None: in any), None when it has none."""
    for entry in table:
        fits = release is None or entry.releases is None or entry.releases.holds(IMPLEMENTATION, release)
        if entry.name == name and fits:
            return entry.number
    return None


def request_code(name: str, release: Release | None = None) -> int | None:
    """The code of a command."""
    return number_of(name, REQUEST_CODE_NAMES, release)


def response_code(name: str, release: Release | None = None) -> int | None:
    """The number of a code of answers."""
    return number_of(name, RESPONSE_CODE_NAMES, release)


def _name(number: int, table: Iterable[NamedNumber], release: Release) -> str:
    for entry in table:
        fits = entry.releases is None or entry.releases.holds(IMPLEMENTATION, release)
        if entry.number == number and fits:
            return entry.name
    return str(number)


def response_name(number: int, release: Release) -> str:
    """The name of a code of answers; its digits when it has none in this release."""
    return _name(number, RESPONSE_CODE_NAMES, release)


def request_name(number: int, release: Release) -> str:
    """The name of a command; its digits when it has none in this release."""
    return _name(number, REQUEST_CODE_NAMES, release)


def language_number(name: str) -> int | None:
    """The number of a language."""
    return LanguageCode[name].value if name in LanguageCode.__members__ else None


def serialize_type(name: str) -> SerializeType | None:
    """An encoding of headers by its name."""
    return SerializeType.__members__.get(name)


def _keys(kind: HeaderType | BodyType | None) -> frozenset[str] | None:
    found = getattr(kind, "KEYS", None)
    return found if isinstance(found, frozenset) else None


def header_keys(code: int, *, answer: bool) -> frozenset[str] | None:
    """The keys of a typed header, None when the command has none that is specified."""
    return _keys((RESPONSE_HEADERS if answer else REQUEST_HEADERS).get(code))


def body_keys(code: int, *, answer: bool) -> frozenset[str] | None:
    """The keys of a typed body of JSON, None when it has none."""
    return _keys((RESPONSE_BODIES if answer else REQUEST_BODIES).get(code))


def ha_message(name: str) -> type[object] | None:
    """The class of a message of HA streams."""
    names = {form.message for stream in (HA_REPLICA, HA_MASTER, HA_MASTER_5_0_0) for form in stream.forms}
    found = getattr(ha, name, None) if name in names else None
    return found if isinstance(found, type) else None


def ha_fields(kind: type[object]) -> frozenset[str]:
    """The fields of a message of HA streams by their names, derived ones among them."""
    own = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    return frozenset(own | {name for name in ("state", "body_size") if hasattr(kind, name)})


def ha_values(message: object) -> Mapping[str, object]:
    """The fields of one message, entries as mappings."""
    kind = type(message)
    return {name: _plain(getattr(message, name)) for name in sorted(ha_fields(kind))}


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def master_stream(release: Release) -> Stream:
    """How a master of this release writes."""
    return HA_MASTER_5_0_0 if release <= _PADDED_UNTIL else HA_MASTER


def by_address(release: Release) -> bool:
    """True when replicas of this release introduce themselves by address, and not by a broker id."""
    # Ids came together with the answer that refuses one.
    return response_code(ResponseCode.CONTROLLER_BROKER_ID_INVALID.name, release) is None


def releases_of(text: str) -> Releases | None:
    """`5.1.1..`, `5.0.0..5.1.0` or `..5.1.0` as a range, None when it is none."""
    first, dots, last = text.partition("..")
    ends = [parse_release(each) if each else None for each in (first, last)]
    if not dots or (first and ends[0] is None) or (last and ends[1] is None):
        return None
    return Releases(IMPLEMENTATION, ends[0], ends[1])
