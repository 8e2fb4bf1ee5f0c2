"""Names of a specification as numbers and types, for the release that a subject speaks."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from replispec.runtime.primitives.binary import BinaryMessage, VersionedBinary
from replispec.runtime.primitives.commands import BodyType, HeaderType
from replispec.runtime.primitives.json_messages import BareMessage
from replispec.runtime.primitives.releases import NamedNumber, Releases

Release = tuple[int, ...]
SaidBody = BodyType | type[VersionedBinary]
"""What the body of a request or an answer is; of some it depends on a version."""
_RELEASE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})*")


def parse_release(text: str) -> Release | None:
    """5.1.1 as numbers, None when it is no release."""
    return tuple(map(int, text.split("."))) if _RELEASE.fullmatch(text) else None


def release_text(release: Release) -> str:
    """A release with dots."""
    return ".".join(map(str, release))


def fits(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern with * and ?; capitals count."""
    return fnmatch.fnmatchcase(name, pattern)


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The names of one family, out of the tables that were generated for it.

    `implementation` is the one whose releases the specification counts by, `releases` those that it knows,
    each with the number by which a header says it. Requests and answers are headers and bodies by code,
    `senders` the parties that send requests; `answer_keys` are what the header of every answer holds that has
    no type of its own (empty: anything);
    `messages` are those that stand alone in a stream, by name. `words` are the choices that a case has for
    words beside them, as the encodings of a header. `fixed` are places and sizes of the fields at the start
    of every frame, in bytes, big-endian: what a case may overwrite. `landmarks` are what else of a frame has
    a place that a case may name. `settled` are codes of answers that are none of the subject's: no proposal
    leaves them open.
    """

    implementation: str
    releases: Mapping[Release, int]
    requests: tuple[NamedNumber, ...] = ()
    responses: tuple[NamedNumber, ...] = ()
    request_headers: Mapping[int, HeaderType] = field(default_factory=dict)
    response_headers: Mapping[int, HeaderType] = field(default_factory=dict)
    answer_keys: frozenset[str] = frozenset()
    request_bodies: Mapping[int, SaidBody] = field(default_factory=dict)
    response_bodies: Mapping[int, SaidBody] = field(default_factory=dict)
    senders: Mapping[int, str] = field(default_factory=dict)
    messages: Mapping[str, type[object]] = field(default_factory=dict)
    words: Mapping[str, Collection[str]] = field(default_factory=dict)
    fixed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    landmarks: tuple[str, ...] = ()
    settled: frozenset[str] = frozenset()

    def known_releases(self) -> list[Release]:
        """The releases that the specification knows by name, oldest first."""
        return sorted(self.releases)

    def release_number(self, release: Release) -> int:
        """What a header's version says of this release; 0 when the specification has no number for it."""
        return self.releases.get(release, 0)

    def request_code(self, name: str, release: Release | None = None) -> int | None:
        """The code of a command in a release (None: in any), None when it has none."""
        return self._number(name, self.requests, release)

    def sender(self, command: str) -> str:
        """The party that sends a command, empty when none is specified."""
        code = self.request_code(command)
        return self.senders.get(code, "") if code is not None else ""

    def response_code(self, name: str, release: Release | None = None) -> int | None:
        """The number of a code of answers in a release (None: in any), None when it has none."""
        return self._number(name, self.responses, release)

    def response_name(self, number: int, release: Release) -> str:
        """The name of a code of answers; its digits when it has none in this release."""
        return self._name(number, self.responses, release)

    def request_name(self, number: int, release: Release) -> str:
        """The name of a command; its digits when it has none in this release."""
        return self._name(number, self.requests, release)

    def header_keys(self, code: int, *, answer: bool) -> frozenset[str] | None:
        """The keys of a typed header, None when the command has none that is specified."""
        typed = _keys((self.response_headers if answer else self.request_headers).get(code))
        return self.answer_keys if typed is None and answer and self.answer_keys else typed

    def body_keys(self, code: int, *, answer: bool) -> frozenset[str] | None:
        """The keys of a typed body, by name where it is not JSON; None when it has none."""
        return _keys((self.response_bodies if answer else self.request_bodies).get(code))

    def holds(self, releases: Releases, release: Release) -> bool:
        """Whether a release lies in a range of this family's releases."""
        return releases.holds(self.implementation, release)

    def releases_of(self, text: str) -> Releases | None:
        """`5.1.1..`, `5.0.0..5.1.0` or `..5.1.0` as a range, None when it is none."""
        first, dots, last = text.partition("..")
        ends = [parse_release(each) if each else None for each in (first, last)]
        if not dots or (first and ends[0] is None) or (last and ends[1] is None):
            return None
        return Releases(self.implementation, ends[0], ends[1])

    def _number(self, name: str, table: Iterable[NamedNumber], release: Release | None) -> int | None:
        for entry in table:
            fits = release is None or entry.releases is None or self.holds(entry.releases, release)
            if entry.name == name and fits:
                return entry.number
        return None

    def _name(self, number: int, table: Iterable[NamedNumber], release: Release) -> str:
        for entry in table:
            fits = entry.releases is None or self.holds(entry.releases, release)
            if entry.number == number and fits:
                return entry.name
        return str(number)


def _keys(kind: HeaderType | SaidBody | None) -> frozenset[str] | None:
    if isinstance(kind, type) and issubclass(kind, BareMessage):
        return None  # its one field has no name on the wire: the keys of a map are data
    if isinstance(kind, type) and issubclass(kind, BinaryMessage | VersionedBinary):
        return message_fields(kind)
    found = getattr(kind, "KEYS", None)
    return found if isinstance(found, frozenset) else None


def message_fields(kind: type[object]) -> frozenset[str]:
    """The fields of a message by their names, derived ones among them."""
    own = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    return frozenset(own | {name for name in ("state", "body_size") if hasattr(kind, name)})


def message_values(message: object) -> Mapping[str, object]:
    """The fields of one message, entries as mappings."""
    kind = type(message)
    return {name: _plain(getattr(message, name)) for name in sorted(message_fields(kind))}


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


@dataclass(frozen=True, slots=True)
class Dialect:
    """A vocabulary as one release has it.

    Every code of an answer but `success` is a refusal; `lenient`: one refusal is as good as another.
    """

    vocabulary: Vocabulary
    release: Release
    success: str = ""
    lenient: bool = False

    def request_code(self, name: str) -> int | None:
        """The code of a command, None when the release has none of this name."""
        return self.vocabulary.request_code(name, self.release)

    def response_code(self, name: str) -> int | None:
        """The number of a code of answers, None when the release has none of this name."""
        return self.vocabulary.response_code(name, self.release)

    def request_name(self, number: int) -> str:
        """The name of a command; its digits when it has none."""
        return self.vocabulary.request_name(number, self.release)

    def response_name(self, number: int) -> str:
        """The name of a code of answers; its digits when it has none."""
        return self.vocabulary.response_name(number, self.release)

    def fits_code(self, number: int, wanted: Collection[str]) -> bool:
        """Whether a code of an answer is one of those that are allowed."""
        if number in [self.response_code(each) for each in wanted]:
            return True
        refusals = {*wanted} - {self.success} - self.vocabulary.settled
        return self.lenient and bool(refusals) and number != self.response_code(self.success)
