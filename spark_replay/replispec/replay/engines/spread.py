"""How the judging of one capture is spread: parts of its connections, told what the whole capture tells.

What must be whole is small. It is made in rounds: every part is asked something without the others
(`of_part`), which is small too, and from all that they tell more becomes known of the capture (`together`).
What has to be compared between parts they bring to meetings, each of which is held by itself. What is known
can be cut as well, so that each part is told, and thinks about, a piece of it. Nothing depends
on the order of parts, nor on how often a part is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.tables import Events
from replispec.replay.report.summary import CaptureRow

Read = Callable[[int], Events]


@dataclass(frozen=True, slots=True)
class Said:
    """What one part says in a round, and what it brings to meetings, by their names."""

    told: Any
    meetings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round. The first argument of each is what is known of the capture. Where that is `cut`, `of_part`
    is given its part's piece: `cut` is told how many parts there are, and answers with what `together` and
    meetings are told, and the pieces.

    `of_part` is given the number of a part, and what answers with all events of a part by its number: it may
    look at others one after the other; `meet` what parts bring to one meeting, and
    says something as well; `together` is given all that was said, of parts in their order, and of meetings.
    A round that is not `due` is left out.
    """

    of_part: Callable[[Any, int, Read], Said]
    together: Callable[[Any, Sequence[Any], Sequence[Any]], Any]
    meet: Callable[[Any, Sequence[Any]], Any] | None = None
    due: Callable[[Any], bool] = lambda _: True
    cut: Callable[[Any, int], tuple[Any, Sequence[Any]]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How a family spreads judging. `begin` is given a capture's figures, its events of all kinds that are
    not `frequent`, how many parts there are, and the options; what is known after the rounds is the result,
    None as long as another round is needed. `apart` says what of that parts and meetings are told, and what
    they are not, which `whole` puts together again."""

    frequent: Sequence[str]
    begin: Callable[[CaptureRow, Events, int, Options], Any]
    rounds: Sequence[Round]
    result: Callable[[Any], CaptureResult | None]
    apart: Callable[[Any], tuple[Any, Any]] = lambda known: (known, None)
    whole: Callable[[Any, Any], Any] = lambda known, _: known

    def following(self, known: Any, number: int) -> int:
        """The first round that is due, of those from this number on."""
        return next(at for at in range(number, len(self.rounds)) if self.rounds[at].due(known))


def judged_in_parts(
    spread: Spread, capture: CaptureRow, rare: Events, parts: Sequence[Events], options: Options
) -> CaptureResult:
    """What a capture comes to; `parts` are all events of any connections each, or of stretches of them in
    which the frequent events of one follow each other; `rare` those of all that are not frequent."""
    known = spread.begin(capture, rare, len(parts), options)
    for each in spread.rounds:
        if (result := spread.result(known)) is not None:
            return result
        if not each.due(known):
            continue
        pieces: Sequence[Any] = ()
        if each.cut is not None:
            known, pieces = each.cut(known, len(parts))
        known, aside = spread.apart(known)
        pieces = pieces or [known] * len(parts)
        said = [each.of_part(piece, number, parts.__getitem__) for number, piece in enumerate(pieces)]
        met = _met(each, known, said)
        known = each.together(spread.whole(known, aside), [part.told for part in said], met)
    result = spread.result(known)
    assert result is not None, "the last round has a result"
    return result


def _met(each: Round, known: Any, said: Iterable[Said]) -> list[Any]:
    brought: dict[str, list[Any]] = defaultdict(list)
    for part in said:
        for name, what in part.meetings.items():
            brought[name].append(what)
    return [] if each.meet is None else [each.meet(known, own) for _, own in sorted(brought.items())]
