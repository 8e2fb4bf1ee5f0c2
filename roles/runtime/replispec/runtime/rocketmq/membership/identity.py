"""The identity of a broker on its disk: two files of one line, of which at most one counts.

Source: RIP "persistent broker id", "Broker metadata"; apache/rocketmq rocketmq-all-5.4.0, BrokerMetadata,
TempBrokerMetadata.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.storage import FilesReader, RemoveFile, RenameFile, ReplaceFile
from replispec.wire.rocketmq.constants import IDENTITY_FILE, IDENTITY_TEMPORARY_FILE, NOT_IN_NAMES
from replispec.wire.rocketmq.store import BrokerIdentity, BrokerIdentityTemp


class IdentityRefused(Exception):
    """The final file cannot be used, and nobody but its owner may decide what becomes of it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What the files say: the id, 0 for none; whether it is `granted` for good; the check code under which
    it was, or will be, applied for."""

    broker_id: int = 0
    check_code: str = ""
    granted: bool = False


class IdentityFiles:
    """The identity files of one broker: read at its start, changed by operations that it has carried out."""

    def __init__(self, files: FilesReader, cluster_name: str, broker_name: str) -> None:
        self._files = files
        self._cluster_name = cluster_name
        self._broker_name = broker_name

    def read(self) -> Identity:
        """What counts: the final file, else the temporary one, else nothing.

        A temporary file that cannot be read counts as absent. Raises IdentityRefused for a final file that
        cannot be read, and for names in either that are not the configured ones; no file is changed. Raises
        StorageFailed when the disk cannot say.
        """
        data = self._files.read(IDENTITY_FILE)
        if data is not None:
            try:
                final = BrokerIdentity.decode(data)
                _check(data, final.crc)
            except RemoteProtocolError as error:
                raise IdentityRefused(f"{IDENTITY_FILE} cannot be read: {error}; {_way_out()}") from error
            broker_id = self._checked(IDENTITY_FILE, final.cluster_name, final.broker_name, final.broker_id)
            return Identity(broker_id, final.register_check_code or "", granted=True)
        data = self._files.read(IDENTITY_TEMPORARY_FILE)
        if data is None:
            return Identity()
        try:
            temporary = BrokerIdentityTemp.decode(data)
            _check(data, temporary.crc)
        except RemoteProtocolError:
            return Identity()
        names = temporary.cluster_name, temporary.broker_name
        return Identity(
            self._checked(IDENTITY_TEMPORARY_FILE, *names, temporary.broker_id),
            temporary.register_check_code or "",
        )

    def temporary(self, broker_id: int, check_code: str) -> ReplaceFile:
        """Notes an id that is about to be applied for."""
        line = BrokerIdentityTemp(self._cluster_name, self._broker_name, broker_id, check_code, None)
        line.crc = str(zlib.crc32(line.encode()))
        return ReplaceFile(IDENTITY_TEMPORARY_FILE, line.encode())

    def granted(self) -> RenameFile:
        """Keeps the applied id for good: the temporary file becomes the final one in one step. May be tried
        again after it failed, for it may have happened all the same."""
        return RenameFile(IDENTITY_TEMPORARY_FILE, IDENTITY_FILE)

    def refused(self) -> RemoveFile:
        """Forgets an id that was not granted."""
        return RemoveFile(IDENTITY_TEMPORARY_FILE)

    def _checked(
        self, file: str, cluster_name: str | None, broker_name: str | None, broker_id: int | None
    ) -> int:
        found, wanted = (cluster_name, broker_name), (self._cluster_name, self._broker_name)
        if found != wanted:
            raise IdentityRefused(
                f"{file} belongs to cluster and broker {found[0]!r}, {found[1]!r},"
                f" but the configuration says {wanted[0]!r}, {wanted[1]!r}; if that is right, {_way_out()}"
            )
        if not broker_id or broker_id < 1:
            raise IdentityRefused(f"{file} holds the id {broker_id}, but ids start at 1; {_way_out()}")
        return broker_id


def _check(data: bytes, crc: str | None) -> None:
    """Whether a file holds what it was written with; files of others have no checksum. Raises
    RemoteProtocolError."""
    if crc is not None and str(zlib.crc32(data.rpartition(NOT_IN_NAMES[0].encode())[0])) != crc:
        raise RemoteProtocolError("its checksum is not that of what it holds", offset=0)


def _way_out() -> str:
    return "move the store aside, and this broker comes back with a new id and a copy of the log"
