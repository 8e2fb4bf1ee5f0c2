"""What a change of messages and numbers does to their bytes."""

from __future__ import annotations

from typing import Final

from replispec.compiler.evolution.compare import Difference
from replispec.compiler.evolution.releases import moved
from replispec.compiler.evolution.verdict import (
    Context,
    Judge,
    Reach,
    Ruling,
    Table,
    filled,
    fixed,
    listed,
    peer,
    words,
)
from replispec.compiler.evolution.walk import SpecNode, shown

_KEYED: Final = ("HEADER_FIELDS", "JSON")
_LAYOUT: Final = fixed(
    Reach.WIRE,
    "{before} becomes {after}: the bytes lie elsewhere, and {peer} that follows the old layout is misread",
)
_TYPE: Final = fixed(
    Reach.WIRE, "{before} becomes {after}: what {peer} writes by the old text is read as something else"
)


def _facts(node: SpecNode | None) -> dict[str, object]:
    return node.facts if node is not None else {}


def _is_keyed(difference: Difference) -> bool:
    """True when the message's fields are found by key, in any of its encodings."""
    parent = _facts(difference.node.parent)
    return parent.get("layout") in _KEYED or parent.get("also") in _KEYED


def _is_placed(difference: Difference) -> bool:
    """True when the message's fields are found by their place, in any of its encodings."""
    parent = _facts(difference.node.parent)
    return any(parent.get(name) in ("BINARY", "TEXT") for name in ("layout", "also"))


def _message_removed(difference: Difference, _context: Context) -> Ruling:
    facts = difference.node.facts
    if facts.get("codes"):
        numbers = shown(facts["codes"])
        return Ruling(Reach.WIRE, f"{peer(difference)} that sends code {numbers} is no longer understood")
    if facts.get("streams"):
        return Ruling(
            Reach.WIRE,
            f"{peer(difference)} that sends it on {shown(facts['streams'])} is no longer read",
        )
    return Ruling(Reach.WIRE, f"{peer(difference)} that writes it is no longer read")


def _message_added(difference: Difference, context: Context) -> Ruling:
    facts = difference.node.facts
    if facts.get("streams") and not context.is_new_release(facts.get("versions")):
        says = f"a reader of the old specification cannot skip it on {shown(facts['streams'])}"
        return Ruling(Reach.WIRE, says)
    if facts.get("codes"):
        says = f"whoever does not know code {shown(facts['codes'])} answers that it is not supported"
        return Ruling(Reach.COMPATIBLE, says)
    return Ruling(Reach.COMPATIBLE, "nothing that was there before is written or read otherwise")


def _codes(difference: Difference, _context: Context) -> Ruling:
    lost, gained = listed(difference)
    if lost:
        return Ruling(
            Reach.WIRE, f"{peer(difference)} that sends it with code {shown(lost)} is not understood"
        )
    return Ruling(Reach.COMPATIBLE, f"it may come with code {shown(gained)}, too")


def _also(difference: Difference, _context: Context) -> Ruling:
    if difference.before is None:
        return Ruling(Reach.COMPATIBLE, f"it may be written as {difference.after}, too")
    return Ruling(Reach.WIRE, f"{peer(difference)} that writes it as {difference.before} is no longer read")


def _bodies(difference: Difference, _context: Context) -> Ruling:
    lost, gained = listed(difference)
    if lost:
        return Ruling(
            Reach.WIRE, f"{peer(difference)} that sends {shown(lost)} as its body is no longer read"
        )
    return Ruling(
        Reach.BEHAVIOUR,
        f"a body {shown(gained)} comes with it; a reader of the old text leaves it aside",
    )


def _versions(difference: Difference, context: Context) -> Ruling:
    """Releases were added to, or taken from, those that have the object."""
    change = moved(difference.before, difference.after)
    what = f'"{difference.node.facts["key"]}"' if "key" in difference.node.facts else difference.node.name
    if change.lost:
        lost = " and ".join(change.lost)
        return Ruling(Reach.WIRE, f"a peer of {lost} that sends {what} is no longer read", lost)
    gained = " and ".join(change.gained)
    is_required = difference.node.kind == "field" and not difference.node.facts.get("optional")
    if is_required and not context.is_new_release(difference.after):
        return Ruling(Reach.WIRE, f"a peer of {gained} that does not send {what} no longer fits", gained)
    return Ruling(Reach.COMPATIBLE, f"what was said of other releases holds for {gained}, too", gained)


def _field_removed(difference: Difference, _context: Context) -> Ruling:
    key = difference.node.facts.get("key", difference.node.name)
    if _is_placed(difference) and not difference.node.facts.get("json_only"):
        says = f"the bytes after it lie elsewhere: what {peer(difference)} writes by the old text is misread"
        return Ruling(Reach.WIRE, says)
    return Ruling(
        Reach.WIRE, f'{peer(difference)} that sends "{key}" is no longer read, and none is sent to it'
    )


def _field_added(difference: Difference, context: Context) -> Ruling:
    facts = difference.node.facts
    key = facts.get("key", difference.node.name)
    if context.is_new_release(facts.get("versions")):
        return Ruling(Reach.COMPATIBLE, "only releases that the old specification does not speak of have it")
    if _is_placed(difference) and not facts.get("json_only"):
        says = f"the bytes after it lie elsewhere: what {peer(difference)} writes by the old text is misread"
        return Ruling(Reach.WIRE, says)
    if facts.get("optional"):
        return Ruling(
            Reach.COMPATIBLE, f'whoever does not know "{key}" leaves it out, and skips what it is sent'
        )
    return Ruling(Reach.WIRE, f'{peer(difference)} that does not send "{key}" no longer fits')


def _field_renamed(difference: Difference, _context: Context) -> Ruling:
    return Ruling(
        Reach.COMPATIBLE,
        filled(
            "{before} is {after} in our code; no byte changes by the name alone (see its key)", difference
        ),
    )


def _key(difference: Difference, _context: Context) -> Ruling:
    if not _is_keyed(difference):
        return Ruling(Reach.COMPATIBLE, "this message has no keys on the wire: no byte changes")
    says = '{peer} that sends "{before}" is no longer read, and one that looks for it finds "{after}"'
    return Ruling(Reach.WIRE, filled(says, difference))


def _checksum(difference: Difference, context: Context) -> Ruling:
    """Of a header it is over the body, and moves no byte."""
    if _is_placed(difference):
        return _LAYOUT(difference, context)
    return Ruling(Reach.BEHAVIOUR, "the key is the same; what is read is compared with the body otherwise")


def _optional(difference: Difference, _context: Context) -> Ruling:
    if difference.after:
        says = "what lacks it is taken; a reader of the old text, which demands it, may now get none"
        return Ruling(Reach.BEHAVIOUR, says)
    return Ruling(Reach.WIRE, f"{peer(difference)} that leaves it out no longer fits")


def _bound(is_lower: bool) -> Judge:
    def judge(difference: Difference, _context: Context) -> Ruling:
        before, after = difference.before, difference.after
        is_tighter = after is not None and (
            before is None or (after > before if is_lower else after < before)
        )
        side = "below" if is_lower else "above"
        if is_tighter:
            return Ruling(Reach.WIRE, f"{peer(difference)} that sends a value {side} {after} is refused")
        limit = before if before is not None else "the old bound"
        return Ruling(
            Reach.COMPATIBLE, f"values {side} {limit} are read; a reader of the old text refuses them"
        )

    return judge


def _tighter(says: str, looser: str, kind: Reach = Reach.COMPATIBLE) -> Judge:
    """A demand that is made or dropped."""

    def judge(difference: Difference, _context: Context) -> Ruling:
        return Ruling(Reach.WIRE, filled(says, difference)) if difference.after else Ruling(kind, looser)

    return judge


def _among(difference: Difference, _context: Context) -> Ruling:
    """The values that a number may have, none listed being all of them."""
    before, after = (set(value or ()) for value in (difference.before, difference.after))
    if after and (not before or before - after):
        lost = shown(sorted(before - after)) if before else "another value"
        return Ruling(Reach.WIRE, f"{peer(difference)} that sends {lost} is refused")
    return Ruling(Reach.COMPATIBLE, "more values are read; a reader of the old text refuses them")


def _order(difference: Difference, _context: Context) -> Ruling:
    if difference.node.facts.get("layout") in ("BINARY", "TEXT"):
        return Ruling(Reach.WIRE, f"the fields lie in another order: {peer(difference)} is misread")
    return Ruling(
        Reach.BEHAVIOUR,
        "keys may be written in another order: bytes differ, whoever reads by key notices nothing",
    )


def _enum_value_removed(difference: Difference, _context: Context) -> Ruling:
    number = difference.node.facts.get("number")
    return Ruling(Reach.WIRE, f"{peer(difference)} that sends {number} for it is no longer understood")


def _wire_name(difference: Difference, _context: Context) -> Ruling:
    enum = difference.node.parent
    by_name = [
        node
        for node in difference.node.root.below()
        if node.facts.get("name_in_json") and enum is not None and node.facts.get("type") == enum.name
    ]
    if by_name:
        names = ", ".join(node.id for node in by_name)
        return Ruling(
            Reach.WIRE, filled('{peer} that sends "{before}" is no longer read: ' + names, difference)
        )
    return Ruling(Reach.COMPATIBLE, "only the number is on the wire; what prints names prints another one")


_VERSIONS_OF: Final = ("message", "field", "value")
WIRE: Table = {
    ("message", "removed"): _message_removed,
    ("message", "added"): _message_added,
    ("message", "renamed"): fixed(Reach.COMPATIBLE, "{before} is {after} in our code; a name is on no wire"),
    ("message", "module"): fixed(Reach.COMPATIBLE, "our code imports it from {after}; no byte changes"),
    ("message", "codes"): _codes,
    ("message", "also"): _also,
    ("message", "bodies"): _bodies,
    ("message", "reordered fields"): _order,
    ("message", "order"): _order,
    ("message", "binary_order"): _order,
    ("message", "given"): _LAYOUT,
    ("message", "kind"): fixed(
        Reach.WIRE, "{before} becomes {after}: {peer} waits for an answer that never comes"
    ),
    ("message", "opens"): fixed(
        Reach.WIRE, "{peer} that begins a connection as the old text says is not understood"
    ),
    **{
        ("message", name): fixed(
            Reach.WIRE, "{before} becomes {after}: {peer} finds another request for an answer than was meant"
        )
        for name in ("answers", "number")
    },
    ("message", "streams"): fixed(
        Reach.WIRE, "{before} becomes {after}: {peer} finds it where it is not read"
    ),
    **{
        ("message", name): _LAYOUT
        for name in ("layout", "bare", "fixed", "separator", "lines", "end_of_line")
    },
    **{(kind, "versions"): _versions for kind in _VERSIONS_OF},
    ("field", "removed"): _field_removed,
    ("field", "added"): _field_added,
    ("field", "renamed"): _field_renamed,
    ("field", "number"): fixed(
        Reach.COMPATIBLE,
        "no number of a field is on this wire: keys, or the order of the fields, decide",
    ),
    ("field", "key"): _key,
    ("field", "optional"): _optional,
    ("field", "minimum"): _bound(is_lower=True),
    ("field", "maximum"): _bound(is_lower=False),
    ("field", "nullable"): _tighter(
        "a reader of the old text refuses the -1 of {peer}", "none is refused where there was one"
    ),
    ("field", "distinct"): _tighter(
        "{peer} that sends an element twice is refused", "elements may come twice"
    ),
    ("field", "checksum"): _checksum,
    ("field", "among"): _among,
    ("field", "unit"): words("the bytes are the same; documents and the dissector say another unit"),
    **{
        ("field", name): words("the bytes are the same; what is replaced before a capture is shown is not")
        for name in ("words", "holds")
    },
    **{("field", name): _TYPE for name in ("type", "repeated", "map_key", "map_value", "equals")},
    **{
        ("field", name): _LAYOUT
        for name in (
            *(
                "size",
                "prefix",
                "key_prefix",
                "value_prefix",
                "length",
                "count",
                "measures",
                "tells",
                "wider",
                "zigzag",
            ),
            *("until", "when", "counts", "unquoted_keys", "object_keys", "json_only", "name_in_json"),
        )
    },
    ("given number", "added"): _LAYOUT,
    ("given number", "removed"): _LAYOUT,
    ("given number", "first"): _bound(is_lower=True),
    ("given number", "last"): _bound(is_lower=False),
    ("enum", "removed"): fixed(Reach.WIRE, "{peer} that sends one of its numbers is no longer understood"),
    ("enum", "added"): fixed(Reach.COMPATIBLE, "nothing that was there before uses it"),
    ("enum", "renamed"): fixed(Reach.COMPATIBLE, "{before} is {after} in our code; a name is on no wire"),
    ("enum", "module"): fixed(Reach.COMPATIBLE, "our code imports it from {after}; no byte changes"),
    ("enum", "reordered values"): words("numbers, not their order, are on the wire"),
    ("value", "removed"): _enum_value_removed,
    ("value", "added"): fixed(Reach.COMPATIBLE, "whoever does not know {name} sees a number without a name"),
    ("value", "renamed"): fixed(Reach.COMPATIBLE, "{before} is {after} in our code; the number is the same"),
    ("value", "number"): fixed(
        Reach.WIRE, "{peer} that sends {before} for {name} is understood as something else"
    ),
    ("value", "wire_name"): _wire_name,
    ("own message", "removed"): fixed(
        Reach.WIRE, "what was written with it, to a log or a peer, is no longer read"
    ),
    ("own message", "added"): fixed(Reach.COMPATIBLE, "nothing that was written before holds it"),
    ("own message", "renamed"): fixed(Reach.COMPATIBLE, "a name is not in protobuf's bytes"),
    ("own message", "reordered fields"): words("numbers, not their order, are on the wire"),
    ("own field", "removed"): fixed(
        Reach.WIRE,
        "what was written with it is refused: the strict reader knows no field of this number",
    ),
    ("own field", "added"): fixed(
        Reach.COMPATIBLE,
        "what was written before is read; an older reader refuses what is written with it",
    ),
    ("own field", "renamed"): fixed(
        Reach.COMPATIBLE, "{before} is {after} in our code; the number is on the wire"
    ),
    **{
        ("own field", name): fixed(
            Reach.WIRE,
            "{before} becomes {after}: what was written before, to a log or a peer, is misread",
        )
        for name in ("number", "type", "label", "oneof")
    },
    ("own enum", "removed"): fixed(Reach.WIRE, "what was written with its numbers is no longer understood"),
    ("own enum", "added"): fixed(Reach.COMPATIBLE, "nothing that was there before uses it"),
    ("own value", "removed"): fixed(Reach.WIRE, "what was written with {name} is no longer understood"),
    ("own value", "added"): fixed(Reach.COMPATIBLE, "what was written before does not hold it"),
    ("own value", "renamed"): fixed(
        Reach.COMPATIBLE, "{before} is {after} in our code; the number is the same"
    ),
    ("own value", "number"): fixed(
        Reach.WIRE, "what was written as {before} for {name} is read as something else"
    ),
}
"""By kind of object and attribute, or what happened to the whole object."""
