"""What a case is, once read: steps, what they do, and what they allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from replispec.runtime.primitives.releases import Releases

MAIN = "main"
WITHIN_S = 3.0
TARGET = "target"
Severity = Literal["must", "should"]
Basis = str
"""What a demand rests on: PROPOSAL, the name of the implementation whose behaviour was observed, or OURS."""
PROPOSAL, OURS = "proposal", "ours"


class CasePlace(NamedTuple):
    """A line of a case file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class CaseError(Exception):
    """A case file does not fit the language: `FILE:LINE: reason`."""

    def __init__(self, place: CasePlace, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Matcher:
    """A tag with what it compares against: `!at_least 3`."""

    tag: str
    value: object


@dataclass(frozen=True, slots=True)
class LogRun:
    """A run of records of a log, as the body of a message: `first` is its first byte, `size` that of each."""

    first: object
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Sent:
    """One request or one message as a case words it; values may still hold variables."""

    command: str | None = None
    code: int | None = None
    header: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    body_text: str | None = None
    body_hex: str | None = None
    oneway: bool = False
    encoding: str | None = None
    opaque: object = None
    flag: object = None
    version: int | None = None
    language: str | None = None
    message: str | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    log: LogRun | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that need not be whole frames: `overwrite` maps a place to hexadecimal, `split` holds places.

    A place is a number of bytes, or a landmark of the first frame: `body`, `header + 12`.
    """

    of: tuple[Sent, ...] = ()
    hex: str = ""
    keep: int | str | None = None
    patch: Mapping[str, object] = field(default_factory=dict)
    overwrite: Mapping[int, str] = field(default_factory=dict)
    split: tuple[int | str, ...] = ()
    each: bool = False
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Open:
    """Open a connection to one of the addresses of the run, or to one that a variable holds.

    `speaks` is the protocol that is spoken there; empty: that of the target, or of what stands beside it.
    """

    to: str
    speaks: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """End a connection, in order or with a reset."""

    name: str
    reset: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Listen:
    """Accept connections on a loopback port of the suite."""

    name: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer the request of the subject that a step took last on a connection; of a service, whoever asks.

    `told`: what a service answered at once is given to steps, too.
    """

    code: str
    header: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    told: bool = False


@dataclass(frozen=True, slots=True)
class Replicate:
    """Take transfers up to a byte of the log, reporting each, the last or none."""

    first: object
    last: object
    report: str


@dataclass(frozen=True, slots=True)
class Waits:
    """What is asked waits for a step, whatever was answered at once before."""


Rule = Answered | Waits | None
"""What becomes of a request: it is answered at once, it waits for a step, or (None) nobody hears of it."""


@dataclass(frozen=True, slots=True)
class Serve:
    """Be somebody that the subject speaks to: `rules` say what is answered at once.

    `tells_ends`: that a connection ends is told to steps, where a subject has but one.
    """

    name: str
    speaks: str
    tells_ends: bool
    rules: Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Change what a service answers at once."""

    name: str
    rules: Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class Bring:
    """Have the adapter start an instance; its addresses are variables from then on."""

    name: str
    role: str
    cluster: str
    set: str
    controllers: tuple[str, ...]
    name_servers: tuple[str, ...]
    purposes: tuple[str, ...]


ENDING = ("crash", "stop", "reset")
"""What becomes of an instance that does not go on with what it was about."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of an instance: crash, stop, suspend, resume, reset, start (again, as it was started).

    `name` may be a variable that holds an address: `$leader` is the instance that listens there.
    """

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Choose addresses for instances before any is started: members of a group know each other."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Others:
    """Name those of the instances `of` whose address is not `than`, in their order."""

    of: tuple[str, ...]
    than: str
    names: tuple[str, ...]


Staged = Serve | RuleChange | Bring | Fate | Reserve | Others
Action = Sent | Raw | Open | End | Wait | Listen | Answered | Replicate | Staged


@dataclass(frozen=True, slots=True)
class AllowedOutcome:
    """One allowed outcome of a step; None is a part that it does not care about."""

    codes: tuple[str, ...] = ()
    command: str | None = None
    message: str | None = None
    header: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    fields: Mapping[str, object] = field(default_factory=dict)
    closed: bool = False
    silence: bool = False
    replicated: Mapping[str, object] | None = None
    opaque: object = None
    flag: object = None  # of a header: what kind of frame it says it is
    save: Mapping[str, str] = field(default_factory=dict)
    unobserved: bool = False
    once: str = ""  # of all outcomes of this name a case takes one, once


@dataclass(frozen=True, slots=True)
class Again:
    """Repeat a step until an outcome fits."""

    every_s: float
    up_to_s: float


@dataclass(frozen=True, slots=True)
class CaseStep:
    """At most one action, and the outcomes that are allowed after it (none: nothing is judged).

    `own_time`: how long the step takes is measured by the subject's clock, so that patience leaves it alone.

    A step that prepares is needed for what the case judges and says nothing about its clause.
    """

    place: CasePlace
    action: Action | None
    on: str = MAIN
    expect: tuple[AllowedOutcome, ...] = ()
    within_s: float = WITHIN_S
    again: Again | None = None
    passing: bool = False
    prepares: bool = False
    own_time: bool = False
    note: str = ""
    optional: bool = False  # of what not every subject can have
    first: str = ""  # of what is asked once before all cases: what holds after it


@dataclass(frozen=True, slots=True)
class GivenStep:
    """Steps under a name that several cases need first."""

    name: str
    place: CasePlace
    says: str
    given: tuple[str, ...]
    steps: tuple[CaseStep, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One requirement of one clause, and how it is tried. `prepared` are the steps of its givens.

    `afterwards` puts back what the case changed for everybody, however it went; nothing of it is judged.

    `bugs` are the known defects that the case finds, `demands` those that it asks for: who mended one fails.
    """

    id: str
    place: CasePlace
    kind: str
    topic: str
    profile: str
    requirement: str
    clause: str
    severity: Severity
    basis: Basis
    releases: Releases
    bugs: tuple[str, ...]
    demands: tuple[str, ...]
    needs: tuple[str, ...]
    alone: bool
    given: tuple[str, ...]
    prepared: tuple[CaseStep, ...]
    steps: tuple[CaseStep, ...]
    afterwards: tuple[CaseStep, ...] = ()
