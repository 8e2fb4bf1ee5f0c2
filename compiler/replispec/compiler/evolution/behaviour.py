"""What a change of machines, rules, judges and clauses does to whoever follows the old ones."""

from __future__ import annotations

from typing import Final

from replispec.compiler.evolution.compare import Difference
from replispec.compiler.evolution.verdict import Context, Kind, Table, Verdict, fixed, listed, words
from replispec.compiler.evolution.walk import Node, shown
from replispec.compiler.model.binding import RecordLog

_B: Final = Kind.BEHAVIOUR
_DEMANDED: Final = fixed(_B, "{name} is demanded now: whoever follows the old specification may break it")
_DROPPED: Final = fixed(_B, "{name} is demanded no more: whoever relies on it is not warned")


def _edge(node: Node) -> str:
    """What an edge does: where it leads and its effects."""
    effects = node.facts.get("do")
    done = f", doing {shown(effects)}" if effects else ", doing nothing"
    condition = node.facts.get("condition")
    when = f" if {shown(condition)}" if condition is not None else ""
    return f"{node.name}{when} to {node.facts.get('to')}{done}"


def _edge_removed(difference: Difference, _context: Context) -> Verdict:
    return Verdict(_B, f"no longer: {_edge(difference.node)}; the event is taken by another edge, or by none")


def _edge_added(difference: Difference, _context: Context) -> Verdict:
    return Verdict(_B, f"new: {_edge(difference.node)}")


def _effects(difference: Difference, _context: Context) -> Verdict:
    lost, gained = listed(difference)
    parts = [f"no longer does {shown(lost)}"] * bool(lost) + [f"does {shown(gained)} now"] * bool(gained)
    return Verdict(_B, " and ".join(parts) or "does the same in another order")


def _assign(difference: Difference, _context: Context) -> Verdict:
    before, after = shown(difference.before), shown(difference.after)
    if difference.after is None:
        return Verdict(_B, f"{difference.key} keeps its value; it became {before}")
    if difference.before is None:
        return Verdict(_B, f"{difference.key} becomes {after}; it kept its value")
    return Verdict(_B, f"{difference.key} becomes {after} instead of {before}")


def _guard(difference: Difference, _context: Context) -> Verdict:
    machine = difference.node.parent
    name = f"guard.{difference.node.name}"
    edges = [
        node.name
        for node in (machine.below() if machine is not None else ())
        if node.kind == "edge" and name in shown(node.facts.get("condition"))
    ]
    asked = ", ".join(dict.fromkeys(edges)) or "no edge of its machine"
    before, after = shown(difference.before), shown(difference.after)
    return Verdict(_B, f"holds when {after}, no longer when {before}; it decides {asked}")


def _timer(difference: Difference, _context: Context) -> Verdict:
    before, after = (
        "no time" if each is None else f"{each / 1000:g} s" for each in (difference.before, difference.after)
    )
    return Verdict(_B, f"waits {after} instead of {before}, where nothing is configured")


def _parameter_added(difference: Difference, _context: Context) -> Verdict:
    facts = difference.node.facts
    if facts.get("default") is None and not any(name.startswith("defaults") for name in facts):
        return Verdict(_B, f"a file that does not set {difference.node.name} is refused: it has no default")
    return Verdict(Kind.COMPATIBLE, "files that do not set it mean what they meant")


def _default(difference: Difference, _context: Context) -> Verdict:
    if difference.after is None:
        return Verdict(_B, f"has no default: a file that relied on {shown(difference.before)} is refused")
    if difference.before is None:
        return Verdict(Kind.COMPATIBLE, f"need not be given: it is {shown(difference.after)} then")
    before, after = shown(difference.before), shown(difference.after)
    return Verdict(_B, f"is {after} instead of {before}, where nothing is configured")


def _log(difference: Difference, _context: Context) -> Verdict:
    """Where records say which case and which instance they are about is what all of a log is read by."""
    before, after = difference.before, difference.after
    if isinstance(before, RecordLog) and isinstance(after, RecordLog):
        for what in ("message", "oneof", "instance"):
            old, new = getattr(before, what), getattr(after, what)
            if old != new:
                says = (
                    f"{what} {old} becomes {new}: what was logged by the old text is read as something else"
                )
                return Verdict(Kind.WIRE, says)
    return Verdict(_B, f"records say {shown(after)} instead of {shown(before)}")


def _finding(difference: Difference, _context: Context) -> Verdict:
    return Verdict(_B, f"reports say {shown(difference.after)} where they said {shown(difference.before)}")


def _machine_added(difference: Difference, _context: Context) -> Verdict:
    finding = difference.node.facts.get("finding")
    if finding:
        return Verdict(_B, f"traffic is judged by it, too: reports hold {finding}")
    return Verdict(Kind.COMPATIBLE, "no machine that was there before does anything else")


def _divergence(difference: Difference, _context: Context) -> Verdict:
    if difference.before and difference.after:
        return Verdict(Kind.WORDS, "the deviation is described in other words")
    if difference.after:
        return Verdict(_B, f"{difference.key} is known to do otherwise, and is no longer blamed for it")
    return Verdict(_B, f"{difference.key} is expected to do as the clause demands")


def _when_empty(says: str) -> Table:
    """Texts whose presence decides and whose words do not."""

    def judge(difference: Difference, _context: Context) -> Verdict:
        if difference.before and difference.after:
            return Verdict(Kind.WORDS, "only the reason is worded otherwise")
        return Verdict(_B, f"{difference.node.name}: {'no longer ' if difference.before else ''}{says}")

    return {("edge", "tolerated"): judge, ("edge", "diverges"): judge, ("otherwise", "divergence"): judge}


_CONDITION: Final = fixed(_B, "is taken when {after}, no longer when {before}")
BEHAVIOUR: Table = {
    ("machine", "added"): _machine_added,
    ("machine", "removed"): fixed(
        _B, "nothing says any longer what {name} does, and no traffic is judged by it"
    ),
    ("machine", "renamed"): fixed(Kind.COMPATIBLE, "{before} is {after} in our code; its edges are the same"),
    ("machine", "instance_key"): words("says of what there is one machine each"),
    ("machine", "evaluated"): words("says what is counted"),
    ("machine", "finding"): _finding,
    ("machine", "answers"): fixed(
        _B, "whoever is answered by {key} gets {after} where {before} was sent, and acts on it"
    ),
    **{
        ("machine", f"reordered {name}"): words("the order is that of the page")
        for name in ("states", "variables", "events", "guards", "table", "overlays")
    },
    ("state", "added"): fixed(_B, "a machine may be in {name}, which the old table does not know"),
    ("state", "removed"): fixed(_B, "no machine is ever in {name}; what was remembered there is not known"),
    ("state", "unreached"): words("says why no edge leads to it"),
    ("edge", "removed"): _edge_removed,
    ("edge", "added"): _edge_added,
    ("edge", "reordered order"): fixed(
        _B, "the edges of {name} are asked in another order: the first that fits counts"
    ),
    ("edge", "to"): fixed(_B, "leads to {after} instead of {before}"),
    ("edge", "do"): _effects,
    ("edge", "assign"): _assign,
    ("edge", "condition"): _CONDITION,
    ("edge", "blames_peer"): fixed(_B, "who is at fault: before the peer {before}, now {after}"),
    **_when_empty("allowed although the proposal does not"),
    ("guard", "condition"): _guard,
    ("event", "default_ms"): _timer,
    ("event", "timer"): fixed(_B, "its time is configured as {after}, no longer as {before}"),
    ("event", "where"): fixed(_B, "means messages of which {after}, no longer those of which {before}"),
    ("event", "messages"): fixed(_B, "is raised by {after}, no longer by {before}"),
    ("parameter", "added"): _parameter_added,
    ("parameter", "removed"): fixed(_B, "a file that sets {name} is noted, and it does nothing"),
    ("parameter", "default"): _default,
    ("machine", "log"): _log,
    ("parameter", "deviates"): words("says what another implementation has by default"),
    ("parameter", "origins"): words("says which class of another implementation has it"),
    **{
        ("group of parameters", what): words("the table and our options are arranged otherwise")
        for what in ("added", "removed", "options", "field")
    },
    ("variable", "initial"): fixed(_B, "begins as {after} instead of {before}"),
    ("source", "fields"): fixed(_B, "{key} is read from {after} instead of {before}"),
    ("source", "codes"): fixed(_B, "an answer is this event with {after}, no longer with {before}"),
    ("source", "added"): fixed(_B, "one more message of a peer is the event of {name}"),
    ("source", "removed"): fixed(
        _B, "a peer that sends it is not heard: the event of {name} does not come of it"
    ),
    ("source", "reordered order"): fixed(_B, "the first message that fits is the event, in another order"),
    ("answer", "code"): fixed(_B, "whoever asked gets {after} where it got {before}, and acts on it"),
    ("answer", "counts_as"): fixed(_B, "a refusal that counted as {before} counts as {after}"),
    ("answer", "header_fields"): fixed(_B, "{key} is answered with {after} instead of {before}"),
    ("answer", "body_fields"): fixed(_B, "{key} is answered with {after} instead of {before}"),
    ("answer", "removed"): fixed(_B, "whoever asked gets no answer of {name}"),
    **{
        ("record", name): fixed(
            Kind.WIRE, "{before} becomes {after}: what was logged by the old text is read as something else"
        )
        for name in ("case", "fields", "envelope", "mark", "marks")
    },
    ("record", "removed"): fixed(Kind.WIRE, "what was logged of {name} is no longer read"),
    ("record", "added"): fixed(Kind.COMPATIBLE, "nothing that was logged before holds it"),
    ("parameter", "defaults"): fixed(
        _B, "where nothing is configured, a {key} has {after} instead of {before}"
    ),
    ("group of parameters", "title"): words("says what stands together on the page"),
    ("rule", "added"): fixed(Kind.COMPATIBLE, "nothing that was there before asks it"),
    ("rule", "removed"): fixed(_B, "no vectors say any longer what {name} returns"),
    ("vector", "result"): fixed(
        _B, "an implementation that returns {before} is wrong now; {after} is demanded"
    ),
    ("vector", "added"): fixed(_B, "one more result is demanded of every implementation"),
    ("vector", "removed"): fixed(_B, "one result is no longer demanded of implementations"),
    ("vector", "renamed"): words("the example has another name"),
    ("rule", "reordered vectors"): words("examples stand in another order"),
    ("example", "added"): fixed(Kind.COMPATIBLE, "golden bytes that follow from the message as it is"),
    ("example", "removed"): fixed(Kind.COMPATIBLE, "the message decides, and is compared by itself"),
    ("example", "renamed"): words("the example has another name"),
    **{
        ("example", name): fixed(Kind.COMPATIBLE, "the message decides, and is compared by itself")
        for name in ("groups", "values", "given", "message")
    },
    ("invariant", "added"): fixed(_B, "traffic is judged by {name}, too: captures may break it"),
    ("invariant", "removed"): fixed(_B, "no traffic is judged by {name} any longer"),
    **{(kind, "says"): words("reports word it otherwise") for kind in ("invariant", "check", "otherwise")},
    ("invariant", "evaluated"): words("says what is counted"),
    ("clause", "added"): _DEMANDED,
    ("clause", "removed"): _DROPPED,
    ("clause", "requirement"): words("the demand is worded otherwise; what checks it is compared by itself"),
    ("clause", "severity"): fixed(_B, "a failure that was {before} is {after}"),
    ("clause", "divergence"): _divergence,
    **{
        ("clause", name): words("says where it is from, or what checks it")
        for name in ("basis", "document", "section", "case", "not_yet")
    },
    **{
        ("paragraph", name): words("says which clauses stand for a paragraph")
        for name in ("added", "removed", "hash", "number", "no_requirement")
    },
    **{
        ("document", name): words("says which paragraphs are covered")
        for name in ("added", "removed", "document")
    },
}
"""By kind of object and attribute, or what happened to the whole object."""
