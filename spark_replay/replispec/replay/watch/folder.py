"""What is new in a folder: copied, put in order, and cut into segments.

Bytes are copied before anything is made of them, because files of a folder are written, cut, replaced and
removed while they are read. A file is read to its last whole record; what is behind it belongs to it when
another file follows, or at the end.
"""

from __future__ import annotations

import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from replispec.replay.capture.files import GZIP_MAGIC, MAGIC_BYTES, cuts, is_text, recognise, walk
from replispec.replay.capture.growing import grown
from replispec.replay.capture.records import CaptureError, CaptureWarning, Records, Split
from replispec.replay.tcp.rotation import OVERLAP_NS_MAXIMUM, natural
from replispec.replay.watch.checkpoint import damaged, digest_of, flush
from replispec.replay.watch.ledger import Ledger, Segment, Standing, WatchedFile

CAPTURES_NAME: Final = "captures"
SEGMENT_BYTES: Final = 8 << 20
# So much of a file is copied at a time to find its first packet; so much of the last one before it is judged.
PEEK_BYTES, LOOK_BYTES = 64 << 10, 64 << 20
HEAD_BYTES: Final = 4096
COPY_BYTES: Final = 1 << 20
# Between a name and how often it was used.
AGAIN: Final = "~"
# So many of the last cuts are remembered: whoever decodes them asks for fewer at a time.
RECENT_MAXIMUM: Final = 1024
FILES_MAXIMUM: Final = 100_000
FULL: Final = f"more than {FILES_MAXIMUM} files were in the folder; this one and later ones are not read"


class FolderReader:
    """Reads a folder into a ledger, and the bytes of its captures into a folder of the checkpoint."""

    def __init__(self, folder: Path, checkpoint: Path, ledger: Ledger, segment_bytes: int) -> None:
        self._folder = folder
        self._captures = checkpoint / CAPTURES_NAME
        self._captures.mkdir(exist_ok=True)
        self._ledger = ledger
        self._segment_bytes = segment_bytes
        self._budget = 1
        self._recover()

    def path(self, name: str) -> Path:
        """Where the bytes of a file are kept."""
        return self._captures / name

    @property
    def is_behind(self) -> bool:
        """Whether the last look ended before everything that was there was read."""
        return self._budget <= 0

    def look(self, budget: int = LOOK_BYTES) -> bool:
        """Read what is new, about `budget` bytes of it at most; whether there was anything."""
        before, self._budget = self._ledger.cuts, budget
        said = len(self._ledger.notes)
        try:
            present = self._known(self._present())
        except OSError as error:
            # It may be there again: what was read stays, and nothing of it is gone.
            self._say_once(self._folder.name, f"the folder cannot be looked at: {error.strerror}")
            return len(self._ledger.notes) != said
        for name in [name for name, file in self._ledger.files.items() if name not in present]:
            self._gone(self._ledger.files[name])
        for name, about in present.items():
            self._seen(name, about)
        for file in sorted(self._ready(), key=lambda file: (file.first_ns or 0, natural(file.name))):
            if self._caught_up():
                self._follow(file)
        self._caught_up()
        return self._ledger.cuts != before or len(self._ledger.notes) != said

    def _present(self) -> dict[str, os.stat_result]:
        found = {}
        # A folder that was removed has no files; those that were read are gone.
        with suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (about := self._about(entry)) is not None:
                    found[entry.name] = about
        return dict(sorted(found.items()))

    def _known(self, present: dict[str, os.stat_result]) -> dict[str, os.stat_result]:
        """The same by the names that they had when they were first read."""
        files = self._ledger.files
        at_home = {file.now for file in files.values() if _is_of(file, present.get(file.now))}
        away = {
            (file.device, file.inode): file
            for file in map(files.__getitem__, self._ledger.order)
            if file.now not in at_home
        }
        for name in present.keys() - at_home if away else ():
            about = present[name]
            known = away.get((about.st_dev, about.st_ino))
            if known is not None and about.st_size >= known.kept and self._begins_as(name, known):
                known.renamed, known.gone = name, False
        found = {}
        # Of those that had one name the last one has it now.
        names = {file.now: file.name for file in files.values()}
        for name, about in present.items():
            if name in names or name not in files:
                found[names.get(name, name)] = about
            elif (again := self._again(name, about)) is not None:
                found[again] = about
        return found

    def _again(self, name: str, about: os.stat_result) -> str | None:
        """Begin another file by the name of one that was read: what it is called here; None: there is no
        room."""
        files = self._ledger.files
        if len(files) >= FILES_MAXIMUM:
            self._say_once(name, FULL)
            return None
        number = 2
        while (called := f"{name}{AGAIN}{number}") in files or (self._folder / called).exists():
            number += 1
        files[called] = WatchedFile(called, about.st_dev, about.st_ino, renamed=name)
        self.path(called).unlink(missing_ok=True)
        return called

    def _begins_as(self, name: str, file: WatchedFile) -> bool:
        """Whether a file begins with what was read of another one: its inode may have been given away."""
        head = self._head(file)
        try:
            with (self._folder / name).open("rb") as source:
                return source.read(len(head)) == head
        except OSError:
            return False

    def _about(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """What is known of a file; None for what is none, and what cannot be read, which is named."""
        if not is_text(entry.name):
            self._unusable(entry.name, "its name is not UTF-8, as results are: rename it")
            return None
        try:
            about = entry.stat()
        except FileNotFoundError:
            if not entry.is_symlink():
                # Listed, and removed before it was looked at: it is not there.
                self._ledger.files.setdefault(entry.name, WatchedFile(entry.name, 0, 0))
            return None
        except OSError as error:
            self._unusable(entry.name, f"cannot be looked at: {error.strerror}")
            return None
        return about if stat.S_ISREG(about.st_mode) else None

    def _unusable(self, name: str, reason: str) -> None:
        """Name once what is in the folder and cannot be read."""
        shown = os.fsencode(name).decode(errors="backslashreplace")
        if shown not in self._ledger.files and len(self._ledger.files) < FILES_MAXIMUM:
            self._refuse(self._ledger.files.setdefault(shown, WatchedFile(shown, 0, 0)), reason)

    def _seen(self, name: str, about: os.stat_result) -> None:
        """Take note of a file that is there."""
        file = self._ledger.files.get(name)
        if file is None or (file.standing is Standing.WAITING and file.gone):
            if len(self._ledger.files) >= FILES_MAXIMUM:
                self._say_once(name, FULL)
                return
            now = file.renamed if file is not None else ""
            file = WatchedFile(name, about.st_dev, about.st_ino, renamed=now)
            self._ledger.files[name] = file
            self.path(name).unlink(missing_ok=True)
        if file.standing in (Standing.PASSED, Standing.REFUSED):
            return
        replaced = self._replaced(file, about)
        if replaced and (file.gone or file.standing is Standing.DONE):
            # All that could be read of it was: a ring came round.
            file.gone = True
            if (again := self._again(file.now, about)) is not None:
                self._find_out(self._ledger.files[again])
        elif replaced:
            self._refuse(
                file, f"was replaced by another file after {file.kept} bytes of it; that one is not read"
            )
        elif file.standing is Standing.DONE and about.st_size > file.kept:
            self._refuse(
                file, f"went on growing after {self._after(name)} had begun; what came later is not read"
            )
        elif file.standing is Standing.WAITING:
            self._find_out(file)

    def _say_once(self, name: str, reason: str) -> None:
        """Name what is not read, unless that was said."""
        if not any(note.reason == reason for note in self._ledger.notes):
            self._ledger.notes.append(CaptureWarning(name, 0, reason, unread=True))

    def _after(self, name: str) -> str:
        order = self._ledger.order
        return order[order.index(name) + 1]

    def _replaced(self, file: WatchedFile, about: os.stat_result) -> bool:
        """Whether a file is not the one that was read so far."""
        if (about.st_dev, about.st_ino) != (file.device, file.inode) or about.st_size < file.kept:
            return True
        if about.st_mtime_ns == file.changed_ns:
            return False
        file.changed_ns = about.st_mtime_ns
        with self._opened(file) as source:
            if source is None:
                return False
            kept = self._head(file)
            failed: list[OSError] = []
            read = b"".join(_blocks(source, 0, len(kept), failed))
            # What cannot be read is told when it is copied.
            return not failed and read != kept

    def _head(self, file: WatchedFile) -> bytes:
        if not file.kept:
            return b""
        with self.path(file.name).open("rb") as kept:
            return kept.read(HEAD_BYTES)

    @contextmanager
    def _opened(self, file: WatchedFile) -> Iterator[int | None]:
        """The file of the folder, if it is there and the one that was seen."""
        try:
            descriptor = os.open(self._folder / file.now, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._gone(file, error)
            yield None
            return
        try:
            about = os.fstat(descriptor)
            same = (about.st_dev, about.st_ino) == (file.device, file.inode)
            yield descriptor if same else None
        finally:
            os.close(descriptor)

    def _copy(self, file: WatchedFile, most: int) -> int:
        """Copy what is new of a file, `most` bytes of it; how many there were."""
        if file.gone or file.standing is Standing.REFUSED:
            return 0
        copied, digest = 0, file.digest
        failed: list[OSError] = []
        with self._opened(file) as source:
            if source is None:
                return 0
            with self.path(file.name).open("ab") as kept:
                for block in _blocks(source, file.kept, most, failed):
                    kept.write(block)
                    copied += len(block)
                    digest = zlib.crc32(block, digest)
                kept.flush()
                flush(kept.fileno())
        file.kept, file.digest = file.kept + copied, digest
        for error in failed:
            self._refuse(file, f"cannot be read: {error.strerror}")
        return copied

    def _gone(self, file: WatchedFile, error: OSError | None = None) -> None:
        """A file cannot be opened any more."""
        if file.gone or file.standing in (Standing.PASSED, Standing.REFUSED):
            return
        if error is not None and not isinstance(error, FileNotFoundError):
            self._refuse(file, f"cannot be opened: {error.strerror}")
            return
        file.gone = True
        if file.standing is Standing.WAITING and file.first_ns is None:
            self._note(file, "vanished before it was read")
        elif file.standing is Standing.WAITING:
            # Its first bytes are kept; the look that would have read the rest had not come to it.
            self._note(file, f"vanished before its turn; what may have followed byte {file.kept} is not read")
        elif file is self._ledger.last:
            self._note(
                file,
                f"vanished while it was the last one; what may have followed byte {file.kept} is not read",
            )

    def unfinished(self) -> list[CaptureWarning]:
        """What nothing is made of while more may come: files that end inside their first record."""
        found = []
        for file in self._ledger.files.values():
            if self._is_undecided(file) and not file.gone and file.kept > MAGIC_BYTES:
                with self._mapped(file) as data, suppress(CaptureError):
                    whole = grown(data, self._whole(file, data)).end
                    if whole < len(data):
                        reason = "ends inside its first record, of which nothing is read"
                        found.append(CaptureWarning(file.name, whole, reason, unread=True))
        return found

    def _find_out(self, file: WatchedFile) -> None:
        """Copy of a new file what tells when its first packet was captured, as far as it is there."""
        while self._is_undecided(file) and self._copy(file, max(PEEK_BYTES, file.kept)):
            self._peek(file)

    def _is_undecided(self, file: WatchedFile) -> bool:
        return file.standing is Standing.WAITING and file.first_ns is None

    def _peek(self, file: WatchedFile) -> None:
        """Find out what a file is, and when its first packet was captured."""
        if file.kept < MAGIC_BYTES or not self._is_undecided(file):
            return
        try:
            with self._mapped(file) as data:
                records = self._first_records(file, data)
        except CaptureError as error:
            if self._head(file)[: len(GZIP_MAGIC)] == GZIP_MAGIC:
                self._pass(file, "compressed files are not watched; give it to replispec replay")
            elif file.kept >= HEAD_BYTES or "no packet capture" in error.reason:
                self._pass(file, error.reason)
            return
        if records is not None and len(records.time_ns):
            file.first_ns = int(records.time_ns[0])

    def _first_records(self, file: WatchedFile, data: mmap.mmap) -> Records | None:
        whole = self._whole(file, data)
        found = grown(data, whole)
        if found.damage and not found.packets:
            self._refuse(file, found.damage)
        return walk(data, replace(whole, end=found.end))[0] if found.packets else None

    def _whole(self, file: WatchedFile, data: mmap.mmap) -> Split:
        return recognise(data, str(self.path(file.name)), file.name)

    @contextmanager
    def _mapped(self, file: WatchedFile) -> Iterator[mmap.mmap]:
        with self.path(file.name).open("rb") as kept:
            data = mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_READ)
        yield data

    def _ready(self) -> list[WatchedFile]:
        """Files with packets that are not yet in the order."""
        return [
            file
            for file in self._ledger.files.values()
            if file.standing is Standing.WAITING and file.first_ns is not None
        ]

    def _caught_up(self) -> bool:
        """Read what is new of the last file; whether all of it was."""
        file = self._ledger.last
        if file is None or file.standing is not Standing.READ:
            return self._budget > 0
        self._budget -= self._copy(file, self._budget)
        self._extend(file)
        return self._budget > 0

    def _follow(self, file: WatchedFile) -> None:
        """Let a file follow the last one, which is done then."""
        last, first_ns = self._ledger.last, file.first_ns or 0
        if last is not None:
            between_ns = first_ns - last.last_ns
            if first_ns < (last.first_ns or 0):
                self._refuse(file, f"begins before {last.name}, which was read already: it came too late")
                return
            if first_ns and last.last_ns and between_ns < -OVERLAP_NS_MAXIMUM:
                early = f"begins {-between_ns / 10**9:.3f} s before {last.name} ends"
                self._refuse(file, f"{early}: two captures side by side are not one; watch a folder each")
                return
            self._close(last)
        file.standing = Standing.READ
        self._ledger.order.append(file.name)
        self._caught_up()

    def _close(self, file: WatchedFile) -> None:
        """No more is read of a file; a packet that is cut at its end is one all the same."""
        if file.standing is Standing.READ:
            file.standing = Standing.DONE
            self._extend(file, closed=True)

    def _extend(self, file: WatchedFile, *, closed: bool = False) -> None:
        """Cut what is new of a file."""
        with self._mapped(file) as data:
            for segment in self.cut(file, data, closed=closed):
                self._take(segment)

    def cut(self, file: WatchedFile, data: mmap.mmap, *, closed: bool) -> list[Segment]:
        """The last segment of a file anew, and those behind it, to its last whole record or to its end."""
        own = [each for each in self._ledger.segments[-1:] if each.file == file.name]
        whole = self._whole(file, data)
        base = file.base
        number = len(self._ledger.segments)
        if own:
            known = own[0]
            number = known.number
            whole = replace(
                whole, start=known.start, byte_order=known.byte_order, interfaces=known.interfaces
            )
        found = grown(data, whole)
        end = len(data) if closed else found.end
        if end <= (own[0].end if own else whole.start):
            return []
        splits, _ = cuts(data, replace(whole, end=end), self._segment_bytes)
        if not own:
            before = self._ledger.segments[-1:]
            base = before[0].base + self._ledger.files[before[0].file].kept - splits[0].start if before else 0
        file.whole, file.base = found.end, base
        records = walk(data, splits[-1])[0]
        if len(records.time_ns):
            file.last_ns = int(records.time_ns[-1])
        return [
            Segment(
                number + at,
                file.name,
                each.start,
                each.end,
                each.container,
                each.byte_order,
                each.interfaces,
                base,
            )
            for at, each in enumerate(splits)
        ]

    def _take(self, segment: Segment) -> None:
        ledger = self._ledger
        ledger.segments[segment.number :] = [segment]
        ledger.cuts += 1
        ledger.recent = [*ledger.recent, (segment.number, segment.end)][-RECENT_MAXIMUM:]

    def _pass(self, file: WatchedFile, reason: str) -> None:
        file.standing = Standing.PASSED
        self.path(file.name).unlink(missing_ok=True)
        self._ledger.notes.append(CaptureWarning(file.name, 0, f"passed over: {reason}"))

    def _refuse(self, file: WatchedFile, reason: str) -> None:
        """Read no more of a file, and say so; what was read of it stays."""
        if file.name in self._ledger.order:
            self._note(file, reason)
            self._close(file)
        else:
            self.path(file.name).unlink(missing_ok=True)
            self._note(file, reason)
        file.standing = Standing.REFUSED

    def _note(self, file: WatchedFile, reason: str) -> None:
        self._ledger.notes.append(CaptureWarning(file.name, file.kept, reason, unread=True))

    def _recover(self) -> None:
        """After a crash a copy may be longer than the ledger knows: the same bytes come again from the file.

        Where that file is gone, what was copied is all there is of it, and counts. Raises CheckpointError for
        a copy that is not what was copied.
        """
        for file in list(self._ledger.files.values()):
            if file.name in self._ledger.order:
                self._copied_so_far(file)
            elif file.standing is Standing.WAITING and not self._is_sound(file):
                # Nothing was made of it yet, and it may have been removed with what became of it.
                self._ledger.files[file.name] = WatchedFile(
                    file.name, file.device, file.inode, renamed=file.renamed
                )
                self.path(file.name).unlink(missing_ok=True)
        for path in self._captures.iterdir():
            if path.name not in self._ledger.files:
                path.unlink()

    def _is_sound(self, file: WatchedFile) -> bool:
        path = self.path(file.name)
        if not path.exists() or path.stat().st_size < file.kept:
            return not file.kept
        return digest_of(path, file.kept) == file.digest

    def _copied_so_far(self, file: WatchedFile) -> None:
        path = self.path(file.name)
        if not self._is_sound(file):
            raise damaged(path)
        try:
            about = (self._folder / file.now).stat()
            is_there = (about.st_dev, about.st_ino) == (file.device, file.inode)
        except OSError:
            is_there = False
        if is_there or file.standing is not Standing.READ:
            os.truncate(path, file.kept)
        file.digest = digest_of(path, digest=file.digest, start=file.kept)
        file.kept = path.stat().st_size


def _blocks(source: int, at: int, most: int, failed: list[OSError]) -> Iterator[bytes]:
    """`most` bytes of an open file, as far as they can be read; `failed` has why not."""
    end = at + most
    try:
        while block := os.pread(source, min(COPY_BYTES, end - at), at):
            at += len(block)
            yield block
    except OSError as error:
        failed.append(error)


def _is_of(file: WatchedFile, about: os.stat_result | None) -> bool:
    """Whether what a name leads to is this file."""
    return about is not None and (about.st_dev, about.st_ino) == (file.device, file.inode)
