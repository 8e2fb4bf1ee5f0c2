"""A family small enough to read whole: two messages, one enum, one machine, one rule, one invariant.

Tests of refusals change one line of it and look at what the compiler says.
"""

from __future__ import annotations

from pathlib import Path

from replispec.compiler.family import FamilySpec, compile_family, read_family
from replispec.compiler.model.message import Enum, EnumValue, Field, Message, Model, Place

_PLACE = Place("proto/small.proto", 1)


def _field(name: str, kind: str, *, repeated: bool = False, optional: bool = False) -> Field:
    return Field(name, 1, kind, "", _PLACE, repeated=repeated, optional=optional)


def _message(name: str, *fields: Field) -> Message:
    return Message(name, "small", "", _PLACE, "BINARY", fields)


def small_model() -> Model:
    """Ping and its two answers, and an enum of states."""
    model = Model("small")
    messages = (
        _message("Ping", _field("number", "int64"), _field("name", "string")),
        _message("Pong", _field("number", "int64"), _field("note", "string", optional=True)),
        _message("LatePong", _field("number", "int64"), _field("late_by", "int32")),
        _message("Mark", _field("epoch", "int32"), _field("start_offset", "int64")),
    )
    model.messages.update({message.name: message for message in messages})
    values = tuple(
        EnumValue(name, number, name, "", _PLACE) for number, name in enumerate(("IDLE", "BUSY", "DONE"))
    )
    model.enums["SmallState"] = Enum("SmallState", "small", "", _PLACE, values)
    return model


MACHINE = """\
machine: caller
about: Somebody who calls and counts.
instance: {key: connection, learns: {name: Ping.name}}
enum: SmallState
states:
  IDLE: {initial: true, about: Nothing was asked.}
  BUSY: {about: An answer is awaited.}
  DONE: {final: true}
groups: {OPEN: [IDLE, BUSY]}
variables:
  count: int64
  limit: {type: int64, initial: 3, about: How many calls there may be.}
  last:  {type: string or none}
let: {next: count + 1, after_next: let.next + 1}
events:
  call:     {sends: Ping}
  answer:   {message: [Pong, LatePong], where: event.number > 0}
  refusal:  {message: Pong, where: event.number == 0}
  patience: {timer: callTimeout}
  note:     {origin: local, hidden: true, fields: {text: string}}
  stop:     {origin: local}
answers: {deliver: SmallState.DONE}
guards:
  fits: {event: answer, if: event.number == count, about: It is the awaited answer., clause: SMALL-CALL-1}
  again: {event: note, if: last == event.text, about: It was noted before.}
transitions:
  - {from: IDLE, event: call, if: count < limit, to: BUSY, do: [start_timer], assign: {count: count + 1}}
  - {from: IDLE, event: call, else: true, to: DONE}
  - {from: BUSY, event: answer, if: guard.fits, to: IDLE, do: [deliver, stop_timer], clause: SMALL-CALL-1}
  - {from: BUSY, event: answer, else: true, to: DONE, blame: peer}
  - {from: BUSY, event: refusal, to: IDLE, assign: {count: 'rule.half(count)'}}
  - {from: BUSY, event: patience, to: DONE, do: [hang_up]}
  - {from: [IDLE, BUSY], event: stop, to: DONE}
  - {from: IDLE, event: note, to: IDLE, assign: {last: event.text}}
overlays:
  other@2.0..: {add: [{from: IDLE, event: answer, to: IDLE, tolerated: answers twice}]}
"""

VECTORS = """\
rules:
  half:
    about: Half of a number, rounded down.
    clause: SMALL-HALF-1
    parameters: {number: int64}
    result: int64
    vectors:
      - {name: even, given: {number: 4}, result: 2}
      - {name: odd, given: {number: 5}, result: 2}
"""

STREAMS = """\
streams:
  calls:
    about: Calls and answers.
    order: Time.
    events:
      call:
        group:  {type: string, from: Name.}
        number: {type: int64, from: Ping.}
        who:    {type: string or none, from: Ping.}
      answer:
        group:  {type: string, from: Name.}
        number: {type: int64, from: Pong.}
"""

INVARIANTS = """\
invariants:
  - id: one-caller
    about: A number belongs to one caller.
    shape: set
    stream: calls
    event: call
    group: [group]
    key: [number]
    where: event.who != none
    value: event.who
    evaluated: a call
    says: '{event.number} is called by {event.who} and {other.who}'
    clause: SMALL-CALL-1
  - id: numbers-grow
    about: Numbers grow.
    shape: order
    stream: calls
    group: [group]
    variables: {last: {type: int64, initial: unknown}}
    evaluated: a call
    says: '{event.number} comes after {last}'
    clause: SMALL-CALL-1
    steps:
      - event: call
        check: event.number > last
        otherwise:
          - {if: event.number == last, verdict: diverged, divergence: {other@1.0..: repeats itself}}
          - {verdict: violated}
        assign: {last: event.number}
"""

CLAUSES = """\
clauses:
  - id: SMALL-CALL-1
    requirement: A caller counts.
    basis: ours
    source: {document: This test}
    divergence: {other@1.0..: repeats itself}
  - {id: SMALL-HALF-1, requirement: Half is half., basis: both, source: {document: Test, section: Halves}}
"""

ROLES = """\
roles:
  caller: {options: CallerOptions, about: It calls.}
  called: {options: CalledOptions, about: It answers.}
without_effect:
  colour: {roles: [caller], default: blue}
"""

PARAMETERS = """\
title: Calls
roles: [caller]
ignored_by: [called]
parameters:
  callTimeout: {about: How long an answer is awaited., type: duration, default: 2 s, timer_of: [caller]}
  callsMax: {about: How many at a time., type: number, minimum: 1, maximum: 9, default: 3, changes: true}
  callName: {about: What it is called., type: word, aliases: [name], roles: [caller, called], ignored_by: []}
  tone: {about: How it sounds., type: choice, values: [LOW, HIGH], default: LOW, origin: Phone}
"""

FILES = {
    "parameters/small/roles.yaml": ROLES,
    "parameters/small/calls.yaml": PARAMETERS,
    "statemachines/small/caller.yaml": MACHINE,
    "vectors/small/half.yaml": VECTORS,
    "invariants/small/streams.yaml": STREAMS,
    "invariants/small/calls.yaml": INVARIANTS,
    "clauses/small/small.yaml": CLAUSES,
}


def write(folder: Path, old: str = "", new: str = "") -> Path:
    """The small family's files below `folder`, with `old` (which must occur once in all) as `new`."""
    assert not old or sum(text.count(old) for text in FILES.values()) == 1, old
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new) if old else text, "utf-8")
    return folder


def compiled(folder: Path, old: str = "", new: str = "") -> dict[str, str]:
    """What the compiler makes of the changed family."""
    files = compile_family(small_model(), write(folder, old, new))
    return {name: data.decode("utf-8") for name, data in files.items()}


def read(folder: Path, old: str = "", new: str = "") -> FamilySpec:
    """The changed family as read, without output."""
    return read_family(small_model(), write(folder, old, new))
