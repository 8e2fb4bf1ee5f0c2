"""What was seen around the packets that are read, counted by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Names of counts that have a sentence; the others are of opened and unopened headers, named after them, and
# of the addresses between which there were the latter.
TCP, OTHERS, CUT, CONTRADICTED, CORRUPT = "tcp", "others", "cut", "contradicted", "corrupt"
DATAGRAMS, UNFINISHED, DISAGREEING, EXCESSIVE = "datagrams", "unfinished", "disagreeing", "excessive"
OPENED, UNOPENED, BETWEEN = "opened: ", "unopened: ", "between: "
SENTENCES = {
    OTHERS: "packets were left out: no TCP over IP",
    CUT: "packets were left out: cut within their headers, so that nothing tells what they are of",
    CONTRADICTED: "IPv4 headers around tunnels or of fragments do not match their checksum",
    CORRUPT: "packets were left out: their checksum is wrong, though their sender fills it in",
    UNFINISHED: "fragmented IP packets were left out: fragments are missing",
    DISAGREEING: "fragmented IP packets were left out: their fragments overlap and differ",
    EXCESSIVE: "IP fragments were left out: there are too many to be joined",
}
# What may have held anything: where there is some of it, not everything that was captured was read.
_UNREAD = (CUT, UNFINISHED, DISAGREEING, EXCESSIVE)
LINK, UNDESCRIBED, DEEPER = (
    "link type",
    "interfaces that the file does not describe",
    "more headers than are opened",
)
_UNREAD_HEADERS = (LINK, UNDESCRIBED, DEEPER)


@dataclass(frozen=True, slots=True)
class Remarks:
    """How many packets, headers or datagrams there were of what has a name above.

    `tcp` counts the rows of packets, which are also there when they are corrupt.
    """

    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", {name: count for name, count in self.counts.items() if count})

    def __add__(self, more: Remarks) -> Remarks:
        return Remarks({name: self[name] + more[name] for name in sorted({*self.counts, *more.counts})})

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)

    def named(self, kind: str) -> dict[str, int]:
        """The counts of opened or of unopened headers by their names, or of the latter by addresses."""
        found = {
            name.removeprefix(kind): count for name, count in self.counts.items() if name.startswith(kind)
        }
        return {name: found[name] for name in sorted(found) if found[name]}

    def texts(self) -> list[str]:
        """What there is to say, a line each."""
        return [f"{self[name]} {text}" for name, text in SENTENCES.items() if self[name]]

    def unread(self) -> list[str]:
        """Of it what may have been of any connection, a line each."""
        headers = [
            f"{count} packets were left out: {name}"
            for name, count in self.named(UNOPENED).items()
            if name.startswith(_UNREAD_HEADERS)
        ]
        return [f"{self[name]} {SENTENCES[name]}" for name in _UNREAD if self[name]] + headers


NO_REMARKS = Remarks()


def total(parts: Iterable[Remarks]) -> Remarks:
    """All of them together."""
    return sum(parts, NO_REMARKS)
