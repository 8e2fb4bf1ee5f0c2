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
        name, "bound", "", _PLACE, "REMOTING_HEADER", fields, codes=(code,), kind=kind, bodies=bodies
    )


def bound_model() -> Model:
    """A counter that is asked for by name, and a request that names it."""
    model = Model("bound")
    members = Message("Members", "bound", "", _PLACE, "JSON", (_field("ids", "int64", "ids", repeated=True),))
    messages = (
        members,
        _command("CountRequest", _COUNT, "REQUEST", _field("by", "int64", "by"), bodies=("Members",)),
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
transitions:
  - {from: IDLE, event: counted, to: IDLE, assign: {total: event.total}}
  - {from: IDLE, event: [asked, named, told, untold, busy, refused], to: IDLE}
"""

FILES = {"statemachines/bound/caller.yaml": CALLER}


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
