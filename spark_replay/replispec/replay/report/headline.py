"""The first thing a reader sees: were acknowledged messages lost, and against what was that checked?

Green is a promise: every acknowledged message was compared with a later master's log, and nothing that a
log held is seen to be cut or to differ, in captures that were read whole. Short of that the tone is amber,
and the lines say what is missing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from replispec.replay.report.asked import Asked
from replispec.replay.report.model import CaptureInfo, Loss, ReportFinding, ReportModel, Sends, Verdict
from replispec.replay.report.wording import asked_groups, asked_time, counted, loss_line, tls_line

MESSAGE = "acknowledged message"
LINES_FIRST = 10


@dataclass(frozen=True, slots=True)
class Headline:
    """Its tone, one sentence, and what belongs to it, a line each."""

    tone: Literal["lost", "kept", "unjudged"]
    text: str
    lines: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """The lines to be read before anything else."""
        return self.lines if len(self.lines) <= LINES_FIRST + 1 else self.lines[:LINES_FIRST]

    @property
    def others(self) -> tuple[str, ...]:
        """The lines behind these: nobody reads those of hundreds of broker groups before anything else."""
        return self.lines[len(self.first) :]


def headline(model: ReportModel) -> Headline:
    """Losses first; without any, a promise only where everything was compared with a later master. What was
    asked for is said: the promise is of nothing else."""
    found = _headline(model)
    return replace(found, lines=(*found.lines, *_asked(model.asked)))


def _headline(model: ReportModel) -> Headline:
    judged = [finding for finding in model.findings if finding.invariant == model.survival]
    unknown = tuple(_not_judged(each) for each in judged if each.verdict is Verdict.UNKNOWN)
    cut = tuple(_cut(each) for each in model.findings if _is_cut(each, model))
    unread = tuple(tls_line(each) for each in model.captures if each.connections_tls)
    anew, alone = tuple(_begun_anew(model.sends)), tuple(_not_followed(model.sends))
    gaps = tuple(_gaps(model.captures))
    missing = (*unknown, *cut, *anew, *alone, *gaps, *unread)
    if model.losses:
        return _lost(model, (*unknown, *cut, *anew, *alone, *unread))
    if not judged:
        return Headline("unjudged", f"Nothing tells whether {MESSAGE}s were lost", missing)
    if unknown:
        return Headline("unjudged", "No loss was found, but not everything could be judged", missing)
    if cut:
        return Headline("unjudged", "No loss was found, but logs were cut or differ", missing)
    if anew:
        return Headline("unjudged", "No loss was found, but a broker set was removed and began anew", missing)
    total = sum(finding.evaluated for finding in judged)
    if alone:
        followed = sum(each.followed for each in model.sends)
        text = f"No loss was seen; {followed:,} of {counted(total, MESSAGE)} checked against a later master"
        return Headline("unjudged", text, missing)
    if gaps:
        return Headline("unjudged", "No loss was found, but not everything that was sent was read", missing)
    checked = f"{counted(total, MESSAGE)} checked against every later master."
    return Headline("kept", f"No {MESSAGE} was lost", (checked, *unread))


def _lost(model: ReportModel, missing: Iterable[str]) -> Headline:
    """Losses; `at least` where what was not captured may hide more."""
    lines = tuple(loss_line(loss) for loss in model.losses)
    lost = _lost_messages(model.losses)
    if _may_be_more(model):
        lost = f"At least {lost}"
        lines += ("More may be among what the capture does not hold.",)
    return Headline("lost", lost, (*lines, *missing))


def _may_be_more(model: ReportModel) -> bool:
    files = {loss.file for loss in model.losses}
    if any(True for _ in _unnamed(model)):
        return True
    if any(True for _ in _gaps(capture for capture in model.captures if capture.file in files)):
        return True
    asked = {model.survival, *model.of_logs}
    groups = {loss.group for loss in model.losses}
    return any(each.unknown for each in model.findings if each.invariant in asked and each.group in groups)


def _unnamed(model: ReportModel) -> Iterator[str]:
    """Messages beside the losses of a file that may be of a group that lost some."""
    files = {loss.file for loss in model.losses}
    yield from _not_followed(each for each in model.sends if each.file in files and not each.named)


def _lost_messages(losses: tuple[Loss, ...]) -> str:
    total = sum(loss.acknowledged for loss in losses)
    groups = list(dict.fromkeys(loss.group for loss in losses))
    owner = f" of {groups[0]}" if len(groups) == 1 else f" of {len(groups)} broker groups"
    return f"{counted(total, MESSAGE)}{owner} {'was' if total == 1 else 'were'} lost"


def _gaps(captures: Iterable[CaptureInfo]) -> Iterator[str]:
    """What was sent and not read, in which a later master or its start may be."""
    for each in captures:
        if each.unusable:
            yield f"Not read: {each.file}: {each.unusable}."
        if each.holes:
            yield f"Not read: {each.file} lacks bytes in {counted(each.holes, 'place')}."
        if each.bytes_undecoded:
            odd = counted(each.bytes_undecoded, "byte")
            yield f"Not read: {each.file} holds {odd} in which no frame was found."
        if each.commands_unread:
            odd = counted(each.commands_unread, "command")
            yield f"Not read: {each.file} holds {odd} with fields or bodies that break their types."
        yield from (f"Not read: {reason}." for reason in each.unread)


def _asked(asked: Asked) -> Iterator[str]:
    if asked.groups:
        yield f"Asked for groups: {asked_groups(asked)}. Of others nothing is told but what may be of these."
    if asked.from_ns is not None or asked.until_ns is not None:
        yield f"Asked for packets {asked_time(asked)}. Of others nothing is told."


def _not_judged(finding: ReportFinding) -> str:
    missing = "no acknowledged send was captured" if finding.evaluated == 0 else "evidence is missing"
    why = finding.says or missing
    return f"Not judged: {finding.group} ({finding.file}): {why}"


def _is_cut(finding: ReportFinding, model: ReportModel) -> bool:
    """Whether it is about bytes of a log that were there and are not, or are others."""
    return finding.invariant in model.of_logs and finding.verdict is not Verdict.OK and not finding.idle


def _cut(finding: ReportFinding) -> str:
    return f"Cut or in doubt ({finding.invariant}): {finding.group} ({finding.file}): {finding.says}"


def _begun_anew(sends: Iterable[Sends]) -> Iterator[str]:
    for each in sends:
        if each.begun_anew and each.acknowledged:
            yield (
                f"{each.group}: the broker set was removed or set up again ({each.file}); whether its "
                f"{counted(each.acknowledged, MESSAGE)} were kept is not judged: stores may be deleted."
            )


def _not_followed(sends: Iterable[Sends]) -> Iterator[str]:
    for each in sends:
        if each.begun_anew:
            continue
        alone = each.acknowledged - each.followed - each.lost_alone - each.unsure
        begin = f"of {counted(each.acknowledged, MESSAGE)} could not be compared:"
        if alone > 0:
            yield (
                f"{each.group}: {alone:,} {begin} this capture ({each.file}) holds no later master's log "
                "after them."
            )
        if each.unsure:
            yield (
                f"{each.group}: {each.unsure:,} {begin} nothing in this capture ({each.file}) tells for sure "
                "in which masterEpoch they were acknowledged."
            )
