"""What makes the answers of a machine whole: each request one answer, and that of its own."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.check.whole_messages import require_whole
from replispec.compiler.model.binding import AnswerForm, Bindings
from replispec.compiler.model.expressions import EnumMember
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.machine import MachineSpec, Transition
from replispec.compiler.model.message import Message, Model, Place, SpecificationError

ASKING = ("REQUEST", "ONEWAY")


def check_answers(machine: MachineSpec, bindings: Bindings, model: Model) -> None:
    """Refuse effects that are said in two ways, messages that answer nothing, and edges without an answer."""
    for form in (*bindings.answers.values(), *bindings.notices.values()):
        with attempt():
            _check_said_once(form, bindings)
            for each in (form, *form.by_release.values()):
                _check_message(each, machine, bindings, model)
    for form in bindings.answers.values():
        with attempt():
            _check_counted(form, machine, bindings)
    with attempt():
        _check_codes(bindings, model)
    # A machine that is one may answer later: the request waits for what others say.
    for edge in machine.transitions() if bindings.has_instances else ():
        with attempt():
            _check_edge(edge, bindings, model)


def _check_said_once(form: AnswerForm, bindings: Bindings) -> None:
    others = [bindings.notes, bindings.answers if form.code is None else bindings.notices]
    if any(form.effect in each for each in others):
        raise SpecificationError(
            form.place,
            f"{form.effect} is said in two ways",
            "keep it under one of answers, notices and notes, and do two effects",
        )


def _check_message(form: AnswerForm, machine: MachineSpec, bindings: Bindings, model: Model) -> None:
    if not form.header:
        return
    message = model.messages[form.header]
    kinds = ASKING if form.code is None else ("RESPONSE",)
    if message.kind not in kinds or message.layout != "HEADER_FIELDS":
        what = "a request of this side" if form.code is None else "an answer"
        raise SpecificationError(
            form.place, f"{message.name} is not {what}", f"name a message of kind {' or '.join(kinds)}"
        )
    _check_whole(form, model)
    if form.code is None:
        return
    for event in machine.effects()[form.effect]:
        for request in _requests(event, bindings, model):
            if not set(request.codes) & set(message.codes):
                raise SpecificationError(
                    form.place,
                    f"{message.name} does not answer {request.name}, which is {event}",
                    f"name the answer with code {request.codes[0]}",
                )


def _check_whole(form: AnswerForm, model: Model) -> None:
    """Header, and body if one is said, have all that whoever is told of them must find there."""
    for name, fields in ((form.header, form.header_fields), (form.body, form.body_fields)):
        if name and (form.whole is None or fields is not form.body_fields):
            require_whole(model.messages[name], fields, form.place, form.releases)


def _check_counted(form: AnswerForm, machine: MachineSpec, bindings: Bindings) -> None:
    """What an answer counts as answers the same requests, and is not counted as anything itself."""
    if not form.counts_as:
        return
    effects = machine.effects()
    if bindings.answers[form.counts_as].counts_as:
        raise SpecificationError(
            form.place, f"{form.counts_as} counts as another answer itself", "name that one, or drop it"
        )
    if not set(effects[form.effect]) & set(effects[form.counts_as]):
        raise SpecificationError(
            form.place,
            f"{form.effect} never answers what {form.counts_as} does",
            "name an answer to the same request",
        )


def _check_codes(bindings: Bindings, model: Model) -> None:
    """All codes of answers are of one enum, and none of that of the requests."""
    first = ""
    for place, code in _codes(bindings):
        first = first or code.enum
        if code.enum != first or model.enums[code.enum].codes:
            raise SpecificationError(
                place,
                f"{code.enum}.{code.member} is no code of an answer",
                "take all codes from one enum, which does not hold those of requests",
            )


def _codes(bindings: Bindings) -> Iterator[tuple[Place, EnumMember]]:
    for form in bindings.answers.values():
        if form.code is not None:
            yield form.place, form.code
    for source in bindings.sources:
        yield from ((refusal.place, refusal.code) for refusal in source.refusals)
    if bindings.missing is not None and bindings.sources:
        yield bindings.sources[0].place, bindings.missing


def _check_edge(edge: Transition, bindings: Bindings, model: Model) -> None:
    """A request is answered once on every edge; what nobody asked for is not answered."""
    answers = [effect for effect in edge.do if effect in bindings.answers]
    requests = [each for each in _requests(edge.event, bindings, model) if each.kind == "REQUEST"]
    if requests and len(answers) != 1:
        said = " and ".join(answers) or "nothing"
        raise SpecificationError(
            edge.place,
            f"{edge.event} is the request {requests[0].name}, and this edge answers {said}",
            "do one effect of answers",
        )
    if answers and not requests:
        raise SpecificationError(
            edge.place,
            f"{edge.event} is no request, and this edge answers {answers[0]}",
            "drop the effect, or make it a notice",
        )


def _requests(event: str, bindings: Bindings, model: Model) -> list[Message]:
    """The requests that an event is."""
    return [model.messages[each.header] for each in bindings.requests if each.event == event]
