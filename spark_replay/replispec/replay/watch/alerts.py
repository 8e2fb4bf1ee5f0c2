"""Losses and violations of a watch, each told once: a line of JSON with a sentence in it.

What was told is known by the frames it is about: who sent them and when. Names that depend on how much was
seen (the number of a connection, a group's suffix) do not count. A journal in the checkpoint is written
first, and what alerts.jsonl lacks of it after a crash is added there.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from replispec.replay.engines.results import CaptureResult
from replispec.replay.judges.findings import FindingRow
from replispec.replay.judges.parts import Proof
from replispec.replay.judges.sends import LossRow
from replispec.replay.report.model import LostSend
from replispec.replay.report.wording import counted, epoch_of, utc
from replispec.replay.watch.checkpoint import CheckpointError, damaged, flush
from replispec.runtime.primitives.invariants import Verdict
from replispec.runtime.primitives.visible import visible

JOURNAL_NAME, ALERTS_NAME = "alerts", "alerts.jsonl"
LOSS, VIOLATION, WITHDRAWN, LIMIT = "loss", "violation", "withdrawn", "limit"
KEY_CHARACTERS: Final = 16
TEXT_CHARACTERS_MAXIMUM: Final = 400
EVIDENCE_MAXIMUM: Final = 3
# Behind so many a last one says that no more are told until the end.
ALERTS_MAXIMUM: Final = 10_000


@dataclass(frozen=True, slots=True)
class Alert:
    """One of them: what is written, and the frames (by key) that are told with it."""

    line: dict[str, Any]
    keys: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentence."""
        return str(self.line["text"])


class Alerts:
    """The alerts of one watch. Raises CheckpointError for a journal that is none."""

    def __init__(self, journal: Path, shown: Path) -> None:
        self._journal = journal
        self._shown = shown
        self._told: dict[str, str] = {}
        self._ids: set[str] = set()
        self._back: set[str] = set()
        self._listed = {str(row.get("id")) for row in _rows(shown)}
        self._lines = _rows(journal)
        if any(row.get("digest") != _digest(row) for row in self._lines):
            raise damaged(journal)
        for row in self._lines:
            self._note(row)
            self._append_shown(row["line"])

    @property
    def of_others(self) -> int:
        """How many alerts stand in alerts.jsonl that a watch with another checkpoint wrote."""
        return len(self._listed - self._ids)

    def __len__(self) -> int:
        return len(self._lines)

    def take(self, result: CaptureResult) -> list[Alert]:
        """What is new in what a stretch came to, kept and shown."""
        found = []
        for alert in self._new(result):
            if len(self) >= ALERTS_MAXIMUM:
                break
            if len(self) + 1 == ALERTS_MAXIMUM:
                text = f"{ALERTS_MAXIMUM} alerts were told: no more are until the end, whose verdict has all"
                alert = Alert({"id": _key(LIMIT), "kind": LIMIT, "text": text}, ())
            self._keep(alert)
            found.append(alert)
        return found

    def settle(self, result: CaptureResult) -> list[Alert]:
        """As `take`, of the whole capture; and what was told before and is not found in it is taken back."""
        found = self.take(result)
        lost = {_loss_key(send) for send in result.lost}
        violated = {each.invariant for each in result.findings if each.verdict is Verdict.VIOLATED}
        for row in list(self._lines):
            line = row["line"]
            stands = (
                lost.intersection(row["keys"]) if line["kind"] == LOSS else line.get("invariant") in violated
            )
            if line["kind"] in (LOSS, VIOLATION) and not stands and line["id"] not in self._back:
                text = f"Taken back: the whole capture does not show this: {line['text']}"
                alert = Alert(
                    {"id": _key(WITHDRAWN, line["id"]), "kind": WITHDRAWN, "of": line["id"], "text": text}, ()
                )
                self._keep(alert)
                found.append(alert)
        return found

    def _new(self, result: CaptureResult) -> Iterator[Alert]:
        lost = [(send, _loss_key(send)) for send in result.lost]
        for loss in result.losses:
            own = [(send, key) for send, key in lost if (send.group, send.epoch) == (loss.group, loss.epoch)]
            new = [(send, key) for send, key in own if key not in self._told]
            if new:
                yield _loss_alert(
                    loss, [send for send, _ in new], tuple(key for _, key in new), len(own) - len(new)
                )
        frames = {_of_send(send) for send in result.lost}
        for finding in result.findings:
            if finding.verdict is Verdict.VIOLATED:
                proofs = [
                    each for each in finding.proofs if (each.verdict or finding.verdict) == Verdict.VIOLATED
                ]
                keyed = {_key(VIOLATION, finding.invariant, *_of_proof(each)): each for each in proofs}
                fresh = {key: each for key, each in keyed.items() if key not in self._told}
                # What a loss is about was told as a loss.
                if fresh and not frames.issuperset(map(_of_proof, proofs)):
                    yield _violation_alert(finding, list(fresh.values()), tuple(fresh))

    def _keep(self, alert: Alert) -> None:
        while alert.line["id"] in self._ids:
            # Told, taken back, and found again: another alert.
            alert.line["id"] = _key(alert.line["id"])
        row: dict[str, Any] = {"line": alert.line, "keys": alert.keys}
        row["digest"] = _digest(row)
        _append(self._journal, row)
        self._lines.append(row)
        self._note(row)
        self._append_shown(alert.line)

    def _note(self, row: dict[str, Any]) -> None:
        """Know what was told; what was taken back is told again when it is found again."""
        line = row["line"]
        self._ids.add(line["id"])
        self._told.update(dict.fromkeys(row["keys"], line["id"]))
        if line["kind"] == WITHDRAWN:
            self._back.add(line["of"])
            self._told = {key: told for key, told in self._told.items() if told != line["of"]}

    def _append_shown(self, line: dict[str, Any]) -> None:
        """Show an alert, unless a watch with another checkpoint has shown it there before."""
        if line["id"] not in self._listed:
            _append(self._shown, line)
            self._listed.add(line["id"])


def _loss_alert(loss: LossRow, sends: list[LostSend], keys: tuple[str, ...], before: int) -> Alert:
    first, last = sends[0], sends[-1]
    what = "more acknowledged message" if before else "acknowledged message"
    text = (
        f"{loss.group}: {counted(len(sends), what)}"
        f" of {epoch_of(loss.epoch)} lost, commit-log offsets {first.offset} to {last.offset}, the first"
        f" acknowledged by {first.broker} at {utc(first.time_ns)}"
    )
    return Alert(
        {
            "id": keys[0],
            "kind": LOSS,
            "text": visible(text, TEXT_CHARACTERS_MAXIMUM),
            "group": loss.group,
            "epoch": loss.epoch,
            "from_offset": first.offset,
            "to_offset": last.offset,
            "messages": len(sends),
            "told_before": before,
            "time_ns": first.time_ns,
            "connection": first.place[1],
        },
        keys,
    )


def _violation_alert(finding: FindingRow, proofs: list[Proof], keys: tuple[str, ...]) -> Alert:
    first = proofs[0]
    text = f"{finding.group}: {finding.invariant} violated at {utc(first.time_ns)}: {first.text}"
    evidence = [
        {
            "time_ns": each.time_ns,
            "connection": each.connection,
            "direction": each.direction,
            "text": each.text,
        }
        for each in proofs[:EVIDENCE_MAXIMUM]
    ]
    return Alert(
        {
            "id": keys[0],
            "kind": VIOLATION,
            "text": visible(text, TEXT_CHARACTERS_MAXIMUM),
            "group": finding.group,
            "invariant": finding.invariant,
            "frames": len(proofs),
            "time_ns": first.time_ns,
            "connection": first.connection,
            "evidence": evidence,
        },
        keys,
    )


def _loss_key(send: LostSend) -> str:
    """Several messages may be acknowledged by one packet, and many at one time of a coarse clock."""
    return _key(LOSS, *_of_send(send), send.offset)


def _of_send(send: LostSend) -> tuple[str, int, int]:
    return _ends(send.place[1]), send.place[2], send.time_ns


def _of_proof(proof: Proof) -> tuple[str, int, int]:
    return _ends(proof.connection), proof.direction, proof.time_ns


def _ends(connection: str) -> str:
    """The endpoints; which of their connections it is depends on how many were seen."""
    return connection.rpartition("#")[0] or connection


def _key(*about: str | int) -> str:
    return hashlib.sha256(repr(about).encode()).hexdigest()[:KEY_CHARACTERS]


def _digest(row: dict[str, Any]) -> int:
    return zlib.crc32(orjson.dumps([row.get("line"), row.get("keys")]))


def _append(path: Path, row: dict[str, Any]) -> None:
    """Add a line that is on the disk before anything else is done."""
    with path.open("ab") as file:
        file.write(orjson.dumps(row) + b"\n")
        file.flush()
        flush(file.fileno())


def _rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, a line each. Raises CheckpointError for what is none."""
    try:
        rows = [orjson.loads(line) for line in _whole_lines(path)]
    except ValueError as error:
        raise CheckpointError(f"{path}: no alerts of a watch: {error}") from error
    if not all(isinstance(row, dict) for row in rows):
        raise CheckpointError(f"{path}: no alerts of a watch")
    return rows


def _whole_lines(path: Path) -> Iterable[bytes]:
    """The lines of a file; one that a crash cut short is taken off."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) != len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return whole.splitlines()
