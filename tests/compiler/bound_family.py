"""A family of commands small enough to read whole: two requests, their answers, and a machine on each side.

Tests of bindings change one line of it and look at what the compiler says, or run what it makes.
"""

from __future__ import annotations

from pathlib import Path

from replispec.compiler.family import compile_family
from replispec.compiler.model.message import Enum, EnumValue, Field, Message, Model, Place

_PLACE = Place("proto/bound.proto", 1)
_COUNT, _NAME = 1, 2


def _field(name: str, kind: str, key: str, *, repeated: bool = False) -> Field:
    return Field(name, 1, kind, "", _PLACE, repeated=repeated, key=key)


def _command(name: str, code: int, kind: str, *fields: Field, bodies: tuple[str, ...] = ()) -> Message:
    return Message(
        name, "bound", "", _PLACE, "HEADER_FIELDS", fields, codes=(code,), kind=kind, bodies=bodies
    )


def bound_model() -> Model:
    """A counter that is asked for by name, and a request that names it."""
    model = Model("bound")
    members = Message("Members", "bound", "", _PLACE, "JSON", (_field("ids", "int64", "ids", repeated=True),))
    messages = (
        members,
        _command(
            "CountRequest",
            _COUNT,
            "REQUEST",
            _field("by", "int64", "by"),
            _field("name", "string", "name"),
            _field("least", "int64", "least"),
            bodies=("Members",),
        ),
        _command("CountResponse", _COUNT, "RESPONSE", _field("total", "int64", "total"), bodies=("Members",)),
        _command("NameRequest", _NAME, "REQUEST", _field("name", "string", "counterName")),
        _command("NameResponse", _NAME, "RESPONSE"),
    )
    model.messages.update({message.name: message for message in messages})
    for enum, values in (
        ("Ask", (("COUNT", _COUNT), ("NAME", _NAME))),
        ("Told", (("DONE", 0), ("BUSY", 7), ("FULL", 8), ("FULL_ONCE", 8))),
    ):
        found = tuple(EnumValue(name, number, name, "", _PLACE) for name, number in values)
        model.enums[enum] = Enum(enum, "bound", "", _PLACE, found, codes=enum == "Ask")
    return model


CALLER = """\
machine: caller
about: Who counts by asking.
states:
  IDLE: {initial: true, about: Nothing more.}
variables:
  total: int64
local:
  own_id: {type: int64, about: The caller's own number.}
events:
  asked:   {sends: CountRequest}
  named:   {message: NameResponse, codes: Told.DONE}
  counted:
    message: CountResponse
    codes: [Told.DONE, Told.FULL]
    fields: {total: int64, members: set int64, is_in: bool}
    from:
      total: header.total
      members: set(body.ids)
      is_in: local.own_id in elements(body.ids)
  told:
    message: NameRequest
    if: header.name != none
    fields: {name: string}
    from: {name: header.name}
  untold:  {message: NameRequest, fields: {}}
  busy:    {answer_to: CountRequest, codes: Told.BUSY, unanswered: true}
  refused: {answer_to: CountRequest, otherwise: true}
guards:
  more: {event: counted, if: event.total > total, about: There are more than before.}
transitions:
  - {from: IDLE, event: counted, to: IDLE, assign: {total: event.total}}
  - {from: IDLE, event: [asked, named, told, untold, busy, refused], to: IDLE}
"""

COUNTER = """\
machine: counter
about: Who counts for others, by name.
states:
  EMPTY: {initial: true, about: Nothing was counted.}
  FULL:  {about: Something was.}
variables:
  total:   int64
  last:    {type: int64 or none}
  members: {type: set int64}
local:
  limit: {type: int64, about: How much one may count at once.}
missing: Told.BUSY
log: {message: Entry, cases: what, instance: name}
events:
  counted:
    message: CountRequest
    instance: first(header.name, 'nobody')
    fields: {by: int64, members: set int64, before: int64, least: int64 or none}
    from: {by: header.by, members: elements(body.ids), before: total, least: header.least}
    refused:
      - {if: header.by != none and header.by > local.limit, code: Told.FULL, remark: 'at most {local.limit}'}
    record: {case: count, fields: {by: amount}}
  name_asked:
    message: NameRequest
    instance: header.name
    fields: {}
answers:
  answer_count:
    code: Told.DONE
    message: CountResponse
    header: {total: total}
    body: {ids: members}
  answer_full:
    {code: Told.FULL, counts_as: answer_count, releases: apache@2.0.., remark: '{members} of {instance}'}
  answer_name: Told.DONE
notices:
  tell: {message: NameRequest, header: {name: instance}}
notes: {record_count: counted}
guards:
  again: {event: counted, if: event.least == last, about: It is as before.}
transitions:
  - {from: EMPTY, event: counted, if: event.by == 0, to: EMPTY, do: [answer_full]}
  - from: EMPTY
    event: counted
    else: true
    to: FULL
    do: [record_count, answer_count, tell]
    assign: {total: total + event.by, last: event.least, members: event.members}
  - {from: FULL, event: counted, to: FULL, do: [answer_count], assign: {total: total + event.by}}
  - {from: EMPTY, event: name_asked, to: EMPTY, do: [answer_name]}
  - {from: FULL, event: name_asked, to: FULL, do: [answer_name]}
"""
LOG = """\
// A log.
syntax = "proto3";

package replispec.noted.v1;

// One entry.
message Entry {
  // The counter.
  string name = 1;
  // What it is.
  oneof what {
    Count count = 2;
  }
}

// Something was counted.
message Count {
  // How much.
  int64 amount = 1;
  // By whom.
  repeated int64 members = 2;
  // What it was before.
  int64 before = 3;
  // The least that is asked for.
  optional int64 least = 4;
}
"""
FILES = {
    "statemachines/bound/caller.yaml": CALLER,
    "statemachines/bound/counter.yaml": COUNTER,
    "proto/replispec/noted/v1/noted.proto": LOG,
}


def write(spec: Path, changes: dict[str, str] | None = None) -> None:
    """The files of the family below `spec`, some of them other than they are."""
    for name, text in {**FILES, **(changes or {})}.items():
        path = spec / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def compiled(spec: Path) -> dict[str, str]:
    """What the family becomes: path below generated/ -> text."""
    write(spec)
    return {name: data.decode() for name, data in compile_family(bound_model(), spec).items()}
