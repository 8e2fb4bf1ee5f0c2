"""The sentences and numbers of the report, as plain text; the page escapes them.

Times are int64 nanoseconds since 1970 UTC; `start_ns` is the first packet of the file, from which seconds
count.
"""

from datetime import UTC, datetime, timedelta

from replispec.replay.report.asked import Asked
from replispec.replay.report.family import words_of
from replispec.replay.report.model import (
    CaptureInfo,
    FailOver,
    Lag,
    Loss,
    Overlap,
    ReportModel,
    Switch,
    Verdict,
)
from replispec.replay.report.moments import MomentKind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NS_PER_SECOND = 10**9
ADDRESSES_SHOWN = 5

MEANING = {
    Verdict.VIOLATED: "the captured bytes contradict the rule",
    Verdict.UNKNOWN: "the capture does not hold what a judgement needs",
    Verdict.DIVERGED: "breaks the proposal in a way that is known of this release",
    Verdict.OK: "every evaluation held",
}

MOMENTS = {
    MomentKind.LAST_FRAME: "old master's last frame",
    MomentKind.CLOSED: "its connection closed",
    MomentKind.SESSION_ENDED: "its session ended",
    MomentKind.RECORDED: "new leader recorded",
    MomentKind.ORDERED: "new leader commanded",
    MomentKind.TAKEN: "command taken",
    MomentKind.ELECTED: "new master told",
    MomentKind.NOTIFIED: "new master notified (1008)",
    MomentKind.ACCEPTED: "first message accepted",
    MomentKind.RETURNED: "old master back as replica",
    MomentKind.REPORTED: "its first report",
}


def applied(model: ReportModel) -> tuple[str, ...]:
    """How many of the rules had something to judge, and what the others would have needed, a line each."""
    rules = {finding.invariant for finding in model.findings}
    idle = sorted(rules - {finding.invariant for finding in model.findings if not finding.idle})
    if not idle:
        return (f"All {len(rules)} rules applied.",) if rules else ()
    others = "other judges" if len(idle) == 1 else "others judge"
    first = f"{len(rules) - len(idle)} of {len(rules)} rules applied; the {others} what was not captured:"
    return (first, *(f"  {name}: {words_of(name).evaluated}" for name in idle))


def epoch_of(number: int | None) -> str:
    """The masterEpoch of lost messages."""
    return "a masterEpoch that was not seen" if number is None else f"masterEpoch {number}"


def loss_line(loss: Loss) -> str:
    """Where the lost messages lay, and whether the configuration allowed it."""
    where = f"{loss.group}: {counted(loss.acknowledged, 'message')} of {epoch_of(loss.epoch)}, "
    where += f"commit-log offsets {loss.from_offset} to {loss.to_offset} ({loss.file})"
    return f"{where}; permitted by {loss.permitted_by}" if loss.permitted_by else where


def asked_groups(asked: Asked) -> str:
    """The groups that a replay was asked for."""
    return " or ".join(asked.groups) or "all"


def asked_time(asked: Asked) -> str:
    """The time that a replay was asked for."""
    since = [] if asked.from_ns is None else [f"from {clock(asked.from_ns)}"]
    until = [] if asked.until_ns is None else [f"until {clock(asked.until_ns)}"]
    return " ".join((*since, *until)) or "all"


def tls_line(capture: CaptureInfo) -> str:
    """Which connections of a capture could not be read because they were encrypted."""
    shown = ", ".join(capture.tls_at[:ADDRESSES_SHOWN])
    more = len(capture.tls_at) - ADDRESSES_SHOWN
    where = f"{shown} and {counted(more, 'other address', 'other addresses')}" if more > 0 else shown
    total = counted(capture.connections_tls, "connection")
    verb = "was" if capture.connections_tls == 1 else "were"
    return f"Not read: {total} to {where} {verb} encrypted by TLS ({capture.file})"


def lag_sentence(lag: Lag) -> str:
    """How far a replica was, by its own word, behind the log that its master had sent it."""
    behind = lag.sent - lag.reported
    what = f"was {behind:,} bytes behind" if behind > 0 else "was not behind"
    where = f"at offset {lag.reported:,} of {lag.sent:,}"
    return f"The last report of {lag.replica} {what} the last that {lag.master} had sent it, {where}."


def switch_sentence(switch: Switch, start_ns: int) -> str:
    """One sentence: when, who, in which epoch, why; a second one for the time without a master."""
    when = f"At {utc(switch.time_ns)} ({seconds(switch.time_ns - start_ns)}) "
    if switch.from_master is None:
        what = f"{switch.group} got {switch.to_master} as its master in masterEpoch {switch.epoch}"
    else:
        what = f"the master of {switch.group} changed from {switch.from_master} to {switch.to_master} "
        what += f"in masterEpoch {switch.epoch}"
    because = f", because {switch.cause}" if switch.cause else "; nothing captured tells why"
    if switch.gap_ns is not None:
        gap = f" Nobody was master for {seconds(switch.gap_ns)}."
    elif switch.from_master is not None:
        gap = " How long nobody was master cannot be told from this capture."
    else:
        gap = ""
    return f"{when}{what}{because}.{gap}"


def overlap_sentence(overlap: Overlap) -> str:
    """For how long two brokers acted as master, and what the replaced one did."""
    did = []
    if overlap.acknowledged:
        did.append(f"acknowledged {counted(overlap.acknowledged, 'message')}")
    if overlap.transfers:
        did.append(f"sent {counted(overlap.transfers, 'transfer')} to replicas")
    return (
        f"Two masters at once: {overlap.old_master} (masterEpoch {overlap.old_epoch}) {' and '.join(did)}"
        f" after {overlap.new_master} had become master in masterEpoch {overlap.new_epoch} at"
        f" {utc(overlap.from_ns)}; the last of it came {seconds(overlap.to_ns - overlap.from_ns)} later."
    )


def failover_sentence(failover: FailOver) -> str:
    """Who followed whom, and what became of the old master's log."""
    change = f"{failover.from_master} to {failover.to_master} in masterEpoch {failover.epoch}."
    end, back = failover.log_end, failover.returned_end
    if back is None:
        return f"{change} The old master was not seen to come back."
    if end is None:
        return f"{change} The old master came back with its log up to offset {back:,}."
    if failover.truncated:
        return (
            f"{change} The old master's log went up to offset {end:,} at least; it came back with {back:,}:"
            f" {counted(end - back, 'byte')} or more had been cut off."
        )
    kept = f"The old master came back with its log up to offset {back:,}"
    return f"{change} {kept}; nothing that it is known to have held was cut off."


def milliseconds(duration_ns: int | None) -> str:
    """A duration in milliseconds with microseconds, such as "1,204.381"; a dash for none."""
    return "-" if duration_ns is None else f"{duration_ns / 1_000_000:,.3f}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun, such as "1 frame" or "2,000 frames"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def seconds(duration_ns: int) -> str:
    """A duration in seconds with milliseconds, such as "10.482 s"."""
    milliseconds = (abs(duration_ns) + 500_000) // 1_000_000
    sign = "-" if duration_ns < 0 and milliseconds else ""
    return f"{sign}{milliseconds // 1000}.{milliseconds % 1000:03} s"


def exact_seconds(duration_ns: int) -> str:
    """A duration in seconds with every digit of the capture, such as "10.482013000 s"."""
    sign = "-" if duration_ns < 0 else ""
    whole, rest = divmod(abs(duration_ns), NS_PER_SECOND)
    return f"{sign}{whole}.{rest:09} s"


def clock(time_ns: int) -> str:
    """The moment in UTC with microseconds; any int64 is a valid moment."""
    return f"{_moment(time_ns):%Y-%m-%d %H:%M:%S.%f} UTC"


def utc(time_ns: int) -> str:
    """The moment in UTC with milliseconds, rounded down, such as "2026-11-20 20:32:55.562 UTC"."""
    return f"{f'{_moment(time_ns):%Y-%m-%d %H:%M:%S.%f}'[:-3]} UTC"


def time_of_day(time_ns: int, step_ns: int = NS_PER_SECOND) -> str:
    """The moment in UTC without its day, with as many digits as times that lie `step_ns` apart need."""
    digits = next((digits for digits in range(6) if step_ns * 10**digits >= NS_PER_SECOND), 6)
    return f"{_moment(time_ns):%H:%M:%S.%f}"[: 8 + digits + bool(digits)]


def _moment(time_ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=time_ns // 1000)
