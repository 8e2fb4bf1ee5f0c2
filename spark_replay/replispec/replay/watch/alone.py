"""Segments decoded by whoever has the checkpoint before it: another process than the one that watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replispec.replay.engines.by_splits import SplitReader
from replispec.replay.frames.hints import Hints
from replispec.replay.watch.checkpoint import CheckpointError, load
from replispec.replay.watch.folder import CAPTURES_NAME
from replispec.replay.watch.kept import SEGMENTS_NAME, KeptSegments
from replispec.replay.watch.ledger import Ledger, ledger_of


def hints_of(settings: dict[str, Any]) -> Hints:
    """What the settings of a watch tell the classification of streams."""
    return Hints(
        frozenset(settings["ha_ports"]), padded_answers=settings["ha_5_0_0"], keep_bodies=settings["bodies"]
    )


def cuts_so_far(checkpoint: Path) -> int:
    """How often segments were cut."""
    return _ledger(checkpoint).cuts


def cuts_between(checkpoint: Path, first: int, behind: int) -> list[int]:
    """The numbers of the segments that were cut then, as far as that is remembered; a segment once."""
    ledger = _ledger(checkpoint)
    begin = ledger.cuts - len(ledger.recent)
    own = ledger.recent[max(0, first - begin) : max(0, behind - begin)]
    return sorted({number for number, _ in own})


def decode_alone(checkpoint: Path, number: int) -> None:
    """Decode a segment on the ground of those that were looked at before it."""
    ledger = _ledger(checkpoint)
    captures = checkpoint / CAPTURES_NAME
    splits = {each.number: each.split(str(captures / each.file), ledger.order[0]) for each in ledger.segments}
    if number not in splits:
        return
    kept = KeptSegments(checkpoint / SEGMENTS_NAME, hints_of(ledger.settings))
    kept.survey(splits[number])
    known = [split for split in splits.values() if kept.is_known(split)]
    ground = kept.ground(SplitReader(splits, {}).data(number), known)
    kept.decode(splits[number], splits, ground)


def _ledger(checkpoint: Path) -> Ledger:
    document = load(checkpoint)
    if document is None:
        raise CheckpointError(f"{checkpoint}: no checkpoint of a watch")
    return ledger_of(document)
