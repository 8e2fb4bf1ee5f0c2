"""What a change of a system is: no program does anything else, and something else is explored or promised."""

from __future__ import annotations

from typing import Final

from replispec.compiler.evolution.compare import CHANGED, Difference
from replispec.compiler.evolution.verdict import Context, Reach, Ruling, Table, filled, fixed
from replispec.compiler.evolution.walk import shown

SYSTEM: Final = "system"
"""The kind of object that is judged here, with all that it holds."""
_C: Final = Reach.COMPATIBLE
_AS_BEFORE: Final = "; no program does anything else"


def _explored(says: str) -> Ruling:
    return Ruling(_C, says + _AS_BEFORE)


def _budget(difference: Difference, _context: Context) -> Ruling:
    if difference.before is None:
        return _explored(f"the explorer lets {difference.key} happen {difference.after} times at most")
    if difference.after is None:
        return _explored(f"the explorer knows no {difference.key} any longer")
    before, after = difference.before, difference.after
    return _explored(
        f"{difference.key} happens {after} times at most instead of {before}, unless --set asks for more"
    )


def _becomes_due(difference: Difference, _context: Context) -> Ruling:
    before, after = (
        "always" if each is None else f"from where {shown(each)} holds"
        for each in (difference.before, difference.after)
    )
    return _explored(f"it is due {after}, no longer {before}")


_TABLE: Final[Table] = {
    ("system", "added"): fixed(_C, f"the explorer knows one more system{_AS_BEFORE}"),
    ("system", "removed"): fixed(_C, f"nobody explores {{name}} any longer{_AS_BEFORE}"),
    ("system", "budgets"): _budget,
    ("system", "messages_max"): fixed(
        _C, f"at most {{after}} messages are on their way instead of {{before}}{_AS_BEFORE}"
    ),
    ("system", "within"): fixed(
        _C, f"states are explored in which {{after}} holds, no longer {{before}}{_AS_BEFORE}"
    ),
    ("property", "added"): fixed(_C, f"one more thing is promised, and asked by the explorer{_AS_BEFORE}"),
    ("property", "removed"): fixed(_C, f"it is promised, and asked by the explorer, no more{_AS_BEFORE}"),
    ("property", "holds"): fixed(
        _C, f"another thing is promised: {{after}}, no longer {{before}}{_AS_BEFORE}"
    ),
    ("property", "whenever"): _becomes_due,
    ("property", "shape"): fixed(_C, f"it is promised as {{after}} instead of {{before}}{_AS_BEFORE}"),
    ("act", "added"): fixed(_C, f"one more thing happens around the machines{_AS_BEFORE}"),
    ("act", "removed"): fixed(_C, f"it happens around the machines no more{_AS_BEFORE}"),
    ("act", "condition"): fixed(
        _C, f"it happens where {{after}} holds, no longer where {{before}} does{_AS_BEFORE}"
    ),
}


def is_of_a_system(difference: Difference) -> bool:
    """Whether it is a system that changes, or something in it."""
    return any(each.kind == SYSTEM for each in difference.node.up())


def of_system(difference: Difference, what: str, context: Context) -> Ruling:
    """The verdict on `what` of a system, or of something in it, has changed."""
    judge = _TABLE.get((difference.node.kind, what))
    if judge is not None:
        return judge(difference, context)
    if difference.operation == CHANGED:
        return Ruling(_C, filled("is explored with {after} instead of {before}", difference) + _AS_BEFORE)
    return _explored(f"something else is explored: {difference.node.kind} {difference.node.name} {what}")
