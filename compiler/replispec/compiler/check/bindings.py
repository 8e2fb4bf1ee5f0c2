"""What makes bindings whole: no message and no answer is two events at once."""

from __future__ import annotations

from replispec.compiler.check.bound_answers import check_answers
from replispec.compiler.model.binding import Bindings, Source
from replispec.compiler.model.expressions import EnumMember
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Model, SpecificationError


def check_bindings(machine: MachineSpec, bindings: Bindings, model: Model) -> None:
    """Refuse a request or an answer that two events claim, and answers of which only some are events."""
    _check_requests(bindings, model)
    _check_outcomes(machine, bindings, model)
    _check_answers_by_release(bindings)
    if bindings.has_instances:
        _check_instances(bindings)
        _check_effects(machine, bindings)
    if bindings.has_instances or bindings.is_answering:
        check_answers(machine, bindings, model)
    if bindings.log is not None:
        _check_records(machine, bindings)


def _check_requests(bindings: Bindings, model: Model) -> None:
    """All but the last event of a request must say by `if` which ones they are."""
    claimed: dict[int, list[Source]] = {}
    for source in bindings.requests:
        for code in model.messages[source.header].codes:
            others = claimed.setdefault(code, [])
            other = next((each for each in others if _meet(each, source) and each.condition is None), None)
            if other is not None:
                raise SpecificationError(
                    source.place,
                    f"{source.event} and {other.event} are both {source.header}{_when(source, other)}",
                    "tell them apart: give all but the last one if:, or releases: that do not overlap",
                )
            others.append(source)


def _meet(one: Source, other: Source) -> bool:
    """Whether both hold in some release."""
    return one.releases is None or other.releases is None or one.releases.overlaps(other.releases)


def _when(one: Source, other: Source) -> str:
    """The releases of both, where they have some."""
    said = [str(each.releases) for each in (one, other) if each.releases is not None]
    return f" in {' and '.join(said)}" if said else ""


def _check_answers_by_release(bindings: Bindings) -> None:
    """Refuse an answer that two ranges of releases claim, or that no range has for whoever says none."""
    for form in bindings.answers.values():
        forms = list(form.by_release.values())
        for number, one in enumerate(forms):
            for other in forms[:number]:
                if one.releases is None or other.releases is None or one.releases.overlaps(other.releases):
                    raise SpecificationError(
                        one.place,
                        f"{form.effect} says two things in {one.releases} and {other.releases}",
                        "give releases that do not overlap",
                    )
        if forms and all(each.releases is not None and each.releases.last for each in forms):
            raise SpecificationError(
                form.place,
                f"{form.effect} says nothing to releases to come",
                "give one range without an end, as NAME@5.1.1..",
            )


def _check_outcomes(machine: MachineSpec, bindings: Bindings, model: Model) -> None:
    claimed: dict[tuple[str, object], list[Source]] = {}
    for source in bindings.outcomes:
        for code in source.codes:
            if model.enums[code.enum].codes:
                raise SpecificationError(
                    source.place, f"{code.enum}.{code.member} is a request", "name the code of an answer"
                )
        for asked in source.asked:
            marks: list[object] = [_number(code, model) for code in source.codes]
            marks += ["otherwise"] * source.otherwise + ["unanswered"] * source.unanswered
            for mark in marks:
                others = claimed.setdefault((asked, mark), [])
                other = next((each for each in others if _meet(each, source)), None)
                if other is not None:
                    what = f"the answer {mark} to {asked}{_when(source, other)}"
                    raise SpecificationError(
                        source.place,
                        f"{source.event} and {other.event} are both {what}",
                        "leave it to one of them, or give releases: that do not overlap",
                    )
                others.append(source)
    received = {asked for asked, _ in claimed}
    sent = {name for each in machine.events.values() if each.sends for name in each.messages}
    for asked in sorted(received & sent):
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


def _check_instances(bindings: Bindings) -> None:
    """Every request names one instance, and is some event whatever it says: there is always an answer."""
    last: dict[tuple[str, str], Source] = {}
    for source in bindings.requests:
        if source.instance is None:
            raise SpecificationError(
                source.place,
                f"{source.event} is of no instance, as others are",
                "write instance: header.NAME",
            )
        key = (source.header, str(source.releases))
        other = last.get(key, source)
        if (source.instance, source.body) != (other.instance, other.body):
            raise SpecificationError(
                source.place,
                f"{source.event} and {other.event} read {source.header} in two ways",
                "give both the same instance: and body:",
            )
        last[key] = source
    for source in last.values():
        if source.condition is not None:
            raise SpecificationError(
                source.place,
                f"{source.header} is no event where the if of {source.event} does not hold",
                "drop the if of its last event, or list it under refused:",
            )


def _check_effects(machine: MachineSpec, bindings: Bindings) -> None:
    """Refuse an effect of which nothing says what it does, and a machine that cannot refuse a request."""
    for edge in machine.transitions():
        for effect in edge.do:
            if effect not in {*bindings.answers, *bindings.notices, *bindings.notes}:
                raise SpecificationError(
                    edge.place, f"nothing says what {effect} does", "list it under answers, notices or notes"
                )
    if bindings.missing is None:
        raise SpecificationError(
            machine.place,
            f"{machine.name} has no code for a request that lacks a field",
            "write missing: ENUM.NAME",
        )


def _check_records(machine: MachineSpec, bindings: Bindings) -> None:
    """Refuse a change that would be forgotten, and two events that are one record."""
    for edge in machine.transitions():
        if edge.event not in bindings.records and (edge.assign or set(edge.sources) != {edge.to}):
            raise SpecificationError(
                edge.place,
                f"{edge.event} changes what is remembered, and has no record",
                f"give the event a record: CASE of {bindings.log.message if bindings.log else 'the log'}",
            )
    seen: dict[tuple[str, int | None], str] = {}
    for form in bindings.records.values():
        numbers: list[int | None] = [mark.number for mark in form.marks]
        for number in numbers or [None]:
            other = seen.setdefault((form.case, number), form.event)
            unmarked = seen.get((form.case, None), form.event)
            if other != form.event or unmarked != form.event:
                raise SpecificationError(
                    form.place,
                    f"{form.event} and {other if other != form.event else unmarked} are both {form.case}",
                    "tell them apart by marks:, or give each a case",
                )
