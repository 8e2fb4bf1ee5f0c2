"""What a watch knows of the files it reads: which, in which order, how far, and how they are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from replispec.replay.capture.records import ByteOrder, CaptureWarning, Container, Interface, Split


class Standing(StrEnum):
    """Where a file of the folder stands: it has no packet yet; it is read, the last one of the capture; it
    is read and another one follows; it is no capture; it cannot be used."""

    WAITING = "waiting"
    READ = "read"
    DONE = "done"
    PASSED = "passed"
    REFUSED = "refused"


@dataclass(slots=True)
class WatchedFile:
    """One file of the folder by its name there.

    `inode`, `device`, `changed_ns`: of the file when it was last seen; `kept`: how many of its bytes are
    copied, `digest` their CRC-32; `whole`: where its last whole record ends; `base` as in Split;
    `first_ns`, `last_ns`: of its first and last packet; None: it has none yet.
    `gone`: it was seen to be there no more; `renamed`: what it is called now, when that is another name.
    """

    name: str
    device: int
    inode: int
    standing: Standing = Standing.WAITING
    changed_ns: int = 0
    kept: int = 0
    digest: int = 0
    whole: int = 0
    base: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    gone: bool = False
    renamed: str = ""

    @property
    def now(self) -> str:
        """Its name in the folder."""
        return self.renamed or self.name


@dataclass(frozen=True, slots=True)
class Segment:
    """Records [start, end) of a file, where the container stands as `byte_order` and `interfaces` say."""

    number: int
    file: str
    start: int
    end: int
    container: Container
    byte_order: ByteOrder
    interfaces: tuple[Interface, ...]
    base: int

    def split(self, path: str, capture: str) -> Split:
        """The same for who decodes it; `path`: where the file's bytes are."""
        return Split(
            path,
            self.file,
            self.number,
            self.start,
            self.end,
            self.container,
            self.byte_order,
            self.interfaces,
            is_first=self.number == 0,
            base=self.base,
            capture=capture,
        )


def stretch_of(segments: Sequence[Segment], room: int) -> Sequence[Segment]:
    """The last segments, as many as there is room for; one at least."""
    first = len(segments)
    while first and (first == len(segments) or segments[first - 1].end - segments[first - 1].start <= room):
        first -= 1
        room -= segments[first].end - segments[first].start
    return segments[first:]


@dataclass(slots=True)
class Ledger:
    """All of it. `order`: the files of the capture; `notes`: what was read around; `cuts`: how often
    segments were cut, `recent` (the last of them): which segment, up to where."""

    settings: dict[str, Any]
    files: dict[str, WatchedFile] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    notes: list[CaptureWarning] = field(default_factory=list)
    cuts: int = 0
    recent: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> WatchedFile | None:
        """The file that is read now."""
        return self.files[self.order[-1]] if self.order else None

    @property
    def unusable(self) -> list[str]:
        """The files that could not be used, or not wholly."""
        return sorted({note.file for note in self.notes if note.unread})

    def document(self) -> dict[str, Any]:
        """What the checkpoint keeps."""
        return asdict(self)


def ledger_of(document: Mapping[str, Any]) -> Ledger:
    """The inverse of `document`."""
    files = {name: WatchedFile(**{**each, "standing": Standing(each["standing"])})
             for name, each in document["files"].items()}  # fmt: skip
    segments = [
        Segment(**{**each, "interfaces": tuple(Interface(**one) for one in each["interfaces"])})
        for each in document["segments"]
    ]
    return Ledger(
        settings=document["settings"],
        files=files,
        order=document["order"],
        segments=segments,
        notes=[CaptureWarning(**each) for each in document["notes"]],
        cuts=document["cuts"],
        recent=[(number, end) for number, end in document["recent"]],
    )
