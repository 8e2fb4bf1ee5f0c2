"""The text file of a simulated process that grows line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.runtime.sim.disk import Content, Disk, Left
from replispec.runtime.storage import StorageFailed

END: Final = b"\n"


class SimulatedLines:
    """See `replispec.runtime.storage.Lines`. A crash inside `append` leaves any part, which is cut when the
    file is opened again; what was put before stays."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._life = disk.life
        self._name = name
        self._content = disk.contents.setdefault(name, Content(bytearray()))
        data = self._content.data
        del data[data.rfind(END) + 1 :]

    def last(self) -> bytes | None:
        """The last line."""
        self._disk.reading(self._life, f"last line of {self._name}")
        lines = bytes(self._content.data).split(END)
        return lines[-2] if len(lines) > 1 else None

    def append(self, lines: Sequence[bytes]) -> None:
        """Put lines after the last, or none of them."""
        held = self._content.data
        size, data = len(held), b"".join(line + END for line in lines)

        def take_effect(left: Left) -> None:
            some = {Left.ALL: len(data), Left.NOTHING: 0}.get(left)
            count = self._disk.rng.below(len(data) + 1) if some is None else some
            held.extend(data[:count])

        try:
            self._disk.change(self._life, f"append lines to {self._name}", take_effect, len(data))
        except StorageFailed:
            del held[size:]
            raise
