"""What a change of machines, rules, judges and clauses does to whoever follows the old ones."""

from __future__ import annotations

from typing import Final

from replispec.compiler.evolution.compare import Difference
from replispec.compiler.evolution.verdict import (
    Context,
    Reach,
    Ruling,
    Table,
    fixed,
    listed,
    words,
)
from replispec.compiler.evolution.walk import SpecNode, shown
from replispec.compiler.model.binding import RecordLog

_B: Final = Reach.BEHAVIOUR
_DEMANDED: Final = fixed(_B, "{name} is demanded now: whoever follows the old specification may break it")
_DROPPED: Final = fixed(_B, "{name} is demanded no more: whoever relies on it is not warned")


def _edge(node: SpecNode) -> str:
    """What an edge does: where it leads and its effects."""
    effects = node.facts.get("do")
    done = f", doing {shown(effects)}" if effects else ", doing nothing"
    condition = node.facts.get("condition")
    when = f" if {shown(condition)}" if condition is not None else ""
    return f"{node.name}{when} to {node.facts.get('to')}{done}"


def _edge_removed(difference: Difference, _context: Context) -> Ruling:
    return Ruling(_B, f"no longer: {_edge(difference.node)}; the event is taken by another edge, or by none")


def _edge_added(difference: Difference, _context: Context) -> Ruling:
    return Ruling(_B, f"new: {_edge(difference.node)}")


def _effects(difference: Difference, _context: Context) -> Ruling:
    lost, gained = listed(difference)
    parts = [f"no longer does {shown(lost)}"] * bool(lost) + [f"does {shown(gained)} now"] * bool(gained)
    return Ruling(_B, " and ".join(parts) or "does the same in another order")


def _assign(difference: Difference, _context: Context) -> Ruling:
    before, after = shown(difference.before), shown(difference.after)
    if difference.after is None:
        return Ruling(_B, f"{difference.key} keeps its value; it became {before}")
    if difference.before is None:
        return Ruling(_B, f"{difference.key} becomes {after}; it kept its value")
    return Ruling(_B, f"{difference.key} becomes {after} instead of {before}")


def _guard(difference: Difference, _context: Context) -> Ruling:
    machine = difference.node.parent
    name = f"guard.{difference.node.name}"
    edges = [
        node.name
        for node in (machine.below() if machine is not None else ())
        if node.kind == "edge" and name in shown(node.facts.get("condition"))
    ]
    asked = ", ".join(dict.fromkeys(edges)) or "no edge of its machine"
    before, after = shown(difference.before), shown(difference.after)
    return Ruling(_B, f"holds when {after}, no longer when {before}; it decides {asked}")


def _timer(difference: Difference, _context: Context) -> Ruling:
    before, after = (
        "no time" if each is None else f"{each / 1000:g} s" for each in (difference.before, difference.after)
    )
    return Ruling(_B, f"waits {after} instead of {before}, where nothing is configured")


def _parameter_added(difference: Difference, _context: Context) -> Ruling:
    facts = difference.node.facts
    if facts.get("default") is None and not any(name.startswith("defaults") for name in facts):
        return Ruling(_B, f"a file that does not set {difference.node.name} is refused: it has no default")
    return Ruling(Reach.COMPATIBLE, "files that do not set it mean what they meant")


def _default(difference: Difference, _context: Context) -> Ruling:
    if difference.after is None:
        return Ruling(_B, f"has no default: a file that relied on {shown(difference.before)} is refused")
    if difference.before is None:
        return Ruling(Reach.COMPATIBLE, f"need not be given: it is {shown(difference.after)} then")
    before, after = shown(difference.before), shown(difference.after)
    return Ruling(_B, f"is {after} instead of {before}, where nothing is configured")


def _log(difference: Difference, _context: Context) -> Ruling:
    """Where records say which case and which instance they are about is what all of a log is read by."""
    before, after = difference.before, difference.after
    if isinstance(before, RecordLog) and isinstance(after, RecordLog):
        for what in ("message", "oneof", "instance"):
            old, new = getattr(before, what), getattr(after, what)
            if old != new:
                says = (
                    f"{what} {old} becomes {new}: what was logged by the old text is read as something else"
                )
                return Ruling(Reach.WIRE, says)
    return Ruling(_B, f"records say {shown(after)} instead of {shown(before)}")


def _finding(difference: Difference, _context: Context) -> Ruling:
    return Ruling(_B, f"reports say {shown(difference.after)} where they said {shown(difference.before)}")


def _machine_added(difference: Difference, _context: Context) -> Ruling:
    finding = difference.node.facts.get("finding")
    if finding:
        return Ruling(_B, f"traffic is judged by it, too: reports hold {finding}")
    return Ruling(Reach.COMPATIBLE, "no machine that was there before does anything else")


def _divergence(difference: Difference, _context: Context) -> Ruling:
    if difference.before and difference.after:
        return Ruling(Reach.WORDS, "the deviation is described in other words")
    if difference.after:
        return Ruling(_B, f"{difference.key} is known to do otherwise, and is no longer blamed for it")
    return Ruling(_B, f"{difference.key} is expected to do as the clause demands")


def _when_empty(says: str) -> Table:
    """Texts whose presence decides and whose words do not."""

    def judge(difference: Difference, _context: Context) -> Ruling:
        if difference.before and difference.after:
            return Ruling(Reach.WORDS, "only the reason is worded otherwise")
        return Ruling(_B, f"{difference.node.name}: {'no longer ' if difference.before else ''}{says}")

    return {("edge", "tolerated"): judge, ("edge", "diverges"): judge, ("otherwise", "divergence"): judge}


_CONDITION: Final = fixed(_B, "is taken when {after}, no longer when {before}")
_FILTER: Final = "whoever filters by {name} in Wireshark finds nothing, or other packets"
BEHAVIOUR: Table = {
    ("party", "added"): fixed(Reach.COMPATIBLE, "no message that was there before names {name}"),
    ("party", "removed"): fixed(Reach.COMPATIBLE, "messages that named {name} are compared by themselves"),
    ("framing", "added"): fixed(
        _B, "the codes of all families that name {name} are one space: whoever watches them tells them apart"
    ),
    ("framing", "removed"): fixed(
        _B, "codes on {name} are no longer kept apart from those of other families that name it"
    ),
    ("framing", "renamed"): fixed(_B, "codes on it are kept apart from those of families that name {after}"),
    ("order", "added"): fixed(Reach.COMPATIBLE, "messages written in it are compared by themselves"),
    ("order", "removed"): fixed(Reach.COMPATIBLE, "messages written in it are compared by themselves"),
    ("order", "hash_map"): fixed(
        _B,
        "keys of messages in the order {name} are written as by a table of {after} places, not of {before}: "
        "who compares bytes sees it, who reads by key does not",
    ),
    **{
        ("dissector", what): fixed(Reach.COMPATIBLE, "what packets are filtered by is compared by itself")
        for what in ("added", "removed", "parts", "streams", "fields", "values")
    },
    ("dissector", "extended"): fixed(_B, "filters that begin with {before} begin with {after}"),
    ("protocol", "added"): fixed(Reach.COMPATIBLE, "one more protocol to filter by"),
    ("protocol", "removed"): fixed(_B, _FILTER),
    ("protocol", "title"): words("Wireshark calls it otherwise"),
    ("filter", "added"): fixed(Reach.COMPATIBLE, "one more name to filter by"),
    ("filter", "removed"): fixed(_B, _FILTER),
    ("filter", "type"): fixed(_B, _FILTER),
    ("filter", "title"): words("Wireshark calls it otherwise"),
    ("machine", "added"): _machine_added,
    ("machine", "removed"): fixed(
        _B, "nothing says any longer what {name} does, and no traffic is judged by it"
    ),
    ("machine", "renamed"): fixed(
        Reach.COMPATIBLE, "{before} is {after} in our code; its edges are the same"
    ),
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
    ("source", "releases"): fixed(_B, "is heard of peers of {after}, no longer of {before}"),
    ("answer", "releases"): fixed(_B, "holds in {after}, no longer in {before}"),
    ("source", "fields"): fixed(_B, "{key} is read from {after} instead of {before}"),
    ("source", "codes"): fixed(_B, "an answer is this event with {after}, no longer with {before}"),
    ("source", "added"): fixed(_B, "one more message of a peer is the event of {name}"),
    ("source", "removed"): fixed(
        _B, "a peer that sends it is not understood: the event of {name} does not come of it"
    ),
    ("source", "reordered order"): fixed(_B, "the first message that fits is the event, in another order"),
    **{
        ("payload", name): fixed(_B, "{key} is sent as {after} instead of {before}")
        for name in ("fields", "body_fields")
    },
    **{
        ("payload", name): fixed(_B, "{after} is sent where {before} was")
        for name in ("message", "body", "is_fixed")
    },
    ("payload", "added"): fixed(Reach.COMPATIBLE, "it says what was left to whoever sends {name}"),
    ("payload", "removed"): fixed(_B, "nothing says any longer what is sent as {name}"),
    ("view", "fields"): fixed(_B, "{key} is shown as {after} instead of {before}"),
    ("view", "added"): fixed(Reach.COMPATIBLE, "nothing that was there before shows it"),
    ("answer", "code"): fixed(_B, "whoever asked gets {after} where it got {before}, and acts on it"),
    ("answer", "counts_as"): fixed(_B, "a refusal that counted as {before} counts as {after}"),
    ("answer", "header_fields"): fixed(_B, "{key} is answered with {after} instead of {before}"),
    ("answer", "body_fields"): fixed(_B, "{key} is answered with {after} instead of {before}"),
    ("answer", "whole"): fixed(_B, "the body of the answer is {after} instead of {before}"),
    ("answer", "header"): fixed(_B, "the header of the answer is {after} instead of {before}"),
    ("answer", "body"): fixed(_B, "the body of the answer is {after} instead of {before}"),
    ("answer", "remark"): words("the remark is for people who read it"),
    ("source", "instance"): fixed(_B, "the event is one of {after}, no longer one of {before}"),
    ("source", "condition"): fixed(_B, "the message is this event when {after}, no longer when {before}"),
    ("refusal", "added"): fixed(_B, "requests are refused that were taken"),
    ("refusal", "removed"): fixed(_B, "requests are taken that were refused"),
    ("refusal", "condition"): fixed(_B, "is refused when {after}, no longer when {before}"),
    ("refusal", "code"): fixed(_B, "whoever is refused gets {after} where it got {before}, and acts on it"),
    ("refusal", "remark"): words("the remark is for people who read it"),
    ("machine", "missing"): fixed(
        _B, "a request without what an event needs gets {after} where it got {before}"
    ),
    ("answer", "removed"): fixed(_B, "whoever asked gets no answer of {name}"),
    **{
        ("record", name): fixed(
            Reach.WIRE,
            "{before} becomes {after}: what was logged by the old text is read as something else",
        )
        for name in ("case", "fields", "envelope", "mark", "marks")
    },
    ("record", "removed"): fixed(Reach.WIRE, "what was logged of {name} is no longer read"),
    ("record", "added"): fixed(Reach.COMPATIBLE, "nothing that was logged before holds it"),
    ("parameter", "defaults"): fixed(
        _B, "where nothing is configured, a {key} has {after} instead of {before}"
    ),
    ("group of parameters", "title"): words("says what stands together on the page"),
    ("rule", "added"): fixed(Reach.COMPATIBLE, "nothing that was there before asks it"),
    ("rule", "removed"): fixed(_B, "no vectors say any longer what {name} returns"),
    ("vector", "result"): fixed(
        _B, "an implementation that returns {before} is wrong now; {after} is demanded"
    ),
    ("vector", "added"): fixed(_B, "one more result is demanded of every implementation"),
    ("vector", "removed"): fixed(_B, "one result is no longer demanded of implementations"),
    ("vector", "renamed"): words("the example has another name"),
    ("rule", "reordered vectors"): words("examples stand in another order"),
    ("example", "added"): fixed(Reach.COMPATIBLE, "golden bytes that follow from the message as it is"),
    ("example", "removed"): fixed(Reach.COMPATIBLE, "the message decides, and is compared by itself"),
    ("example", "renamed"): words("the example has another name"),
    **{
        ("example", name): fixed(Reach.COMPATIBLE, "the message decides, and is compared by itself")
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
