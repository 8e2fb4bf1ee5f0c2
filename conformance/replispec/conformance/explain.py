"""What a case does, or what a clause demands and who checks it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.conformance.defects import Defect
from replispec.conformance.families import clauses
from replispec.conformance.model import (
    WITHIN_S,
    Action,
    AllowedOutcome,
    Answered,
    Bring,
    Case,
    CaseStep,
    End,
    Fate,
    Listen,
    Open,
    Others,
    Raw,
    Replicate,
    Reserve,
    Rule,
    RuleChange,
    Sent,
    Serve,
    Staged,
    Wait,
    Waits,
)
from replispec.conformance.values import shown
from replispec.runtime.primitives.clauses import Clause


def explain(
    name: str, cases: Sequence[Case], defects: Mapping[str, Defect] | None = None
) -> list[str] | None:
    """Lines about the case, clause or defect of this name; None when there is none."""
    for case in cases:
        if case.id == name:
            return list(_case(case))
    known = clauses().get(name)
    if known is not None:
        return list(_clause(known.clause, [case for case in cases if case.clause == name]))
    defect = (defects or {}).get(name)
    return list(_defect(defect, cases)) if defect is not None else None


def nearest(name: str, cases: Sequence[Case]) -> list[str]:
    """A few names of cases and clauses that contain what was asked for."""
    wanted = name.lower()
    known = [*clauses(), *(case.id for case in cases)]
    return [each for each in known if wanted in each.lower()][:8]


def _clause(clause: Clause, cases: Sequence[Case]) -> Iterator[str]:
    yield f"{clause.id}  ({clause.severity}; basis: {clause.basis})"
    yield f"  {clause.requirement}"
    yield f"  Source: {', '.join(filter(None, (clause.document, clause.section)))}"
    for versions, words in clause.divergence.items():
        yield f"  Diverges in {versions}: {words}"
    if clause.uses:
        yield "  Checked by:"
        yield from (f"    {use}" for use in clause.uses)
    if clause.not_yet:
        yield f"  Nothing checks it: {clause.not_yet}"
    yield f"  Cases: {len(cases)}"
    yield from (f"    {case.id}  {case.requirement}" for case in cases)


def _defect(defect: Defect, cases: Sequence[Case]) -> Iterator[str]:
    yield f"{defect.mark}  {defect.says}"
    yield f"  Reported: {', '.join(defect.upstream) or 'nowhere'}"
    yield "  Found by:"
    yield from (f"    {case.id}  {case.requirement}" for case in cases if defect.mark in case.bugs)
    demanding = [case for case in cases if defect.mark in case.demands]
    if demanding:
        yield "  Demanded by, since releases have it:"
        yield from (f"    {case.id}  {case.requirement}" for case in demanding)


def _case(case: Case) -> Iterator[str]:
    yield case.id
    yield f"  {case.requirement}"
    clause = clauses()[case.clause].clause
    yield f"  {case.severity}; basis: {case.basis}; {case.releases}; profile {case.profile}; {case.place}"
    yield f"  Clause: {clause.requirement} ({', '.join(filter(None, (clause.document, clause.section)))})"
    if case.bugs:
        yield f"  Finds the known defects: {', '.join(case.bugs)}"
    if case.demands:
        yield f"  Demands the known defects, which a mended subject fails: {', '.join(case.demands)}"
    if case.needs:
        yield f"  Needs the address of: {', '.join(case.needs)}"
    if case.prepared:
        yield f"  Given: {', '.join(case.given)}"
        yield from _steps(case.prepared)
    yield "  Steps:"
    yield from _steps(case.steps)
    if case.afterwards:
        yield "  Afterwards, however it went:"
        yield from _steps(case.afterwards)


def _steps(steps: Sequence[CaseStep]) -> Iterator[str]:
    for at, step in enumerate(steps, start=1):
        over = "" if step.on == "main" else f" over {step.on}"
        yield f"    {at:>2}. {_action(step.action)}{over}{f'  # {step.note}' if step.note else ''}"
        yield from (f"        {words}" for words in _around(step))
        for outcome in step.expect:
            yield f"        -> {_outcome(outcome)}"


def _around(step: CaseStep) -> Iterator[str]:
    """How long is waited, what is repeated or passed over, what a step is for: where it is not as usual."""
    if step.again is not None:
        yield f"again every {step.again.every_s:g} s, for {step.again.up_to_s:g} s, until an outcome fits"
    if step.expect and step.within_s != WITHIN_S:
        yield f"within {step.within_s:g} s"
    if step.passing:
        yield "passing over what fits no outcome"
    if step.own_time:
        yield "by the subject's clock: patience does not stretch it"
    if step.optional:
        yield "where it goes otherwise the case does not apply"
    elif step.prepares:
        yield "prepares: where it goes otherwise the case is not judged"


def _action(action: Action | None) -> str:
    match action:
        case None:
            return "wait for"
        case Sent():
            what = action.message or action.command or str(action.code)
            values = action.fields or action.header
            body = f" body {shown(action.body)}" if action.body is not None else ""
            return f"send {what} {shown(values)}{body}".rstrip()
        case Raw():
            of = " + ".join(part.message or part.command or str(part.code) for part in action.of)
            cut = f", the first {action.keep} bytes" if action.keep is not None else ""
            cut = f", up to {action.keep}" if isinstance(action.keep, str) else cut
            at = ", ".join(map(str, action.split))
            pieces = ", byte by byte" if action.each else f", cut at {at}" * bool(action.split)
            pause = f", {action.pause_s:g} s apart" * bool(pieces and action.pause_s)
            return f"send bytes of {of or action.hex}{cut}{pieces}{pause}{_changes(action)}"
        case Open():
            where = action.to if action.to.startswith("$") else f"the {action.to}"
            return f"open a connection to {where}{f', and speak {action.speaks}' * bool(action.speaks)}"
        case End():
            return f"{'reset' if action.reset else 'close'} {action.name}"
        case Wait():
            return f"wait {action.seconds:g} s"
        case Listen():
            return f"listen as {action.name}"
        case Answered():
            body = f" body {shown(action.body)}" if action.body is not None else ""
            return f"reply {action.code} {shown(action.header)}{body}".rstrip()
        case Replicate():
            return f"replicate from {shown(action.first)} to {shown(action.last)}, report {action.report}"
        case _:
            return _staged(action)


def _staged(action: Staged) -> str:
    match action:
        case Serve():
            return (
                f"be {action.name}, which speaks {action.speaks} and answers at once: {_rules(action.rules)}"
            )
        case RuleChange():
            return f"from now on {action.name} answers at once: {_rules(action.rules)}"
        case Bring():
            where = ", ".join((*action.controllers, *action.name_servers))
            return f"have a {action.role} started as {action.name}, with {where or 'no peers'}"
        case Fate():
            return f"{action.what} {action.name}{' again' if action.what == 'start' else ''}"
        case Reserve():
            return f"choose addresses for {', '.join(action.names)}"
        case Others():
            of, names = ", ".join(action.of), ", ".join(action.names)
            return f"call those of {of} that are not at {action.than}: {names}"


def _rules(rules: Mapping[str, Rule]) -> str:
    return "; ".join(f"{name} {_rule(each)}" for name, each in rules.items()) or "nothing"


def _rule(rule: Rule) -> str:
    if isinstance(rule, Waits):
        return "not, it waits for a step"
    return rule.code if rule else "never"


def _changes(raw: Raw) -> str:
    """What a case writes over bytes before they go out."""
    changes = [f"{name} {value}" for name, value in raw.patch.items()]
    changes += [f"{digits} at {at}" for at, digits in raw.overwrite.items()]
    return f", with {', '.join(changes)}" if changes else ""


def _outcome(outcome: AllowedOutcome) -> str:
    if outcome.closed:
        return "the subject ends the connection"
    if outcome.silence:
        return "nothing comes"
    what = " or ".join(outcome.codes) or outcome.command or outcome.message or "transfers"
    parts = [f"{name} {shown(value)}" for name, value in _parts(outcome) if value not in (None, {})]
    saves = [f"{path} as ${name}" for name, path in outcome.save.items()]
    return " ".join([what, *parts, *_marks(outcome), *([f"(saves {', '.join(saves)})"] if saves else [])])


def _marks(outcome: AllowedOutcome) -> Iterator[str]:
    if outcome.once:
        yield f"(of all outcomes named {outcome.once} one, once)"
    if outcome.unobserved:
        yield "(allowed by the proposals, seen of no release)"


def _parts(outcome: AllowedOutcome) -> Iterator[tuple[str, object]]:
    yield "to request", outcome.opaque
    yield "flag", outcome.flag
    yield "header", outcome.header
    yield "body", outcome.body
    yield "fields", outcome.fields
    yield "with", outcome.replicated
