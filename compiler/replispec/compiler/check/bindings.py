"""What makes bindings whole: no message and no answer is two events at once."""

from __future__ import annotations

from replispec.compiler.language.expressions import EnumMember
from replispec.compiler.model.binding import Bindings, Source
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import Model, SpecificationError


def check_bindings(machine: Machine, bindings: Bindings, model: Model) -> None:
    """Refuse a request or an answer that two events claim, and answers of which only some are heard."""
    _check_requests(bindings, model)
    _check_outcomes(machine, bindings, model)


def _check_requests(bindings: Bindings, model: Model) -> None:
    """All but the last event of a request must say by `if` which ones they are."""
    claimed: dict[int, Source] = {}
    for source in bindings.requests:
        for code in model.messages[source.header].codes:
            other = claimed.get(code)
            if other is not None and other.condition is None:
                raise SpecificationError(
                    source.place,
                    f"{source.event} and {other.event} are both {source.header}",
                    "tell them apart: give all but the last one if:",
                )
            claimed[code] = source


def _check_outcomes(machine: Machine, bindings: Bindings, model: Model) -> None:
    claimed: dict[tuple[str, object], Source] = {}
    for source in bindings.outcomes:
        for asked in source.asked:
            marks: list[object] = [_number(code, model) for code in source.codes]
            marks += ["otherwise"] * source.otherwise + ["unanswered"] * source.unanswered
            for mark in marks:
                other = claimed.get((asked, mark))
                if other is not None:
                    raise SpecificationError(
                        source.place,
                        f"{source.event} and {other.event} are both the answer {mark} to {asked}",
                        "leave it to one of them",
                    )
                claimed[asked, mark] = source
    heard = {asked for asked, _ in claimed}
    sent = {name for each in machine.events.values() if each.sends for name in each.messages}
    for asked in sorted(heard & sent):
        for mark in ("otherwise", "unanswered"):
            if (asked, mark) not in claimed:
                raise SpecificationError(
                    machine.place,
                    f"{machine.name} sends {asked}, and no event is its answer that is {mark}",
                    f"give one event answer_to: {asked} and {mark}: true",
                )


def _number(code: EnumMember, model: Model) -> int:
    """The number of a code: two names may have one."""
    return next(each.number for each in model.enums[code.enum].values if each.name == code.member)
