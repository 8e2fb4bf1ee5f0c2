"""A member of a broker set that is to copy its log again: who it is, where it stands, what is given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from replispec.cli.repairs import RepairFinding, RepairRefused
from replispec.runtime.configuration import parse
from replispec.runtime.net.ask_shell import ask, clock_s
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.access import signer_of
from replispec.runtime.rocketmq.derived_options import check_members, log_folder
from replispec.runtime.rocketmq.framing import Command, FrameBuffer, decode_command
from replispec.runtime.rocketmq.membership import IdentityFiles, IdentityRefused
from replispec.runtime.rocketmq.membership.repair import (
    May,
    RepairStanding,
    given_up,
    leader_named,
    leader_question,
    outlasted,
    question,
    standing,
)
from replispec.runtime.storage import FilesReader, Operation
from replispec.runtime.storage.disk_shell import DiskStorage
from replispec.wire.rocketmq.constants import CHECKPOINT_FILE
from replispec.wire.rocketmq.parameters import ROLES
from replispec.wire.rocketmq.streams import REMOTING

ANSWER_S = 3.0


class StoppedMember:
    """A stopped member, from the text of its properties file. Raises ConfigurationError, StorageFailed."""

    def __init__(self, text: str, overrides: Mapping[str, str]) -> None:
        self._options = parse(text, ROLES["broker"], overrides=overrides).options
        check_members(self._options)
        # As the member itself will speak.
        self._sign = signer_of(self._options, DiskStorage())
        tls = replace(self._options.tls, tls_server_mode="DISABLED")
        self._sealing = Sealing(tls) if tls.tls_enable else None
        self.root: str = self._options.store_path_root_dir
        self._out_since_s: float | None = None

    def identity(self, files: FilesReader) -> int:
        """The id that it keeps. Raises RepairRefused when there is none that it could keep."""
        options = self._options
        try:
            found = IdentityFiles(files, options.broker_cluster_name, options.broker_name).read()
        except IdentityRefused as error:
            raise RepairRefused(str(error)) from error
        if not found.granted:
            raise RepairRefused(
                "there is no identity to keep: start this member, and it gets an id and a copy"
            )
        if files.read(CHECKPOINT_FILE) is not None:
            raise RepairRefused(
                "this is a store of Apache RocketMQ: move it aside, and its broker copies again"
            )
        return found.broker_id

    def look(self, broker_id: int) -> RepairFinding:
        """Where it stands by the word of the first controller that says it: one of those configured, or the
        one that they name as the one that leads."""
        silent: list[str] = []
        asked: list[str] = []
        configured = self._options.controller_addr
        to_ask = list(configured)
        while to_ask:
            address = to_ask.pop(0)
            asked.append(address)
            try:
                found = self._asked(address, broker_id)
                leader = self._leader(address) if found.may is May.UNSAID else ""
            except (OSError, RemoteProtocolError) as error:
                silent.append(f"{address}: {error}")
                continue
            if found.may in (May.YES, May.NO):
                period_s = self._options.alteration_doubt_period_ms / 1_000
                return _finding(outlasted(found, self._out_for_s(), period_s))
            if found.may is May.SOON:
                self._out_since_s = None
            silent.append(f"{address}: {found.why}")
            if leader and address in configured and leader not in asked:
                to_ask = [leader, *(each for each in to_ask if each != leader)]
        return RepairFinding(
            may=False, waits=True, why="; ".join(silent) or "controllerAddr names no controller"
        )

    def _out_for_s(self) -> float:
        """How long every answer has said that it is out of the set."""
        if self._out_since_s is None:
            self._out_since_s = clock_s()
        return clock_s() - self._out_since_s

    def _asked(self, address: str, broker_id: int) -> RepairStanding:
        name = self._options.broker_name
        return standing(self._answer(address, question(name)), name, broker_id)

    def _leader(self, address: str) -> str:
        return leader_named(self._answer(address, leader_question()))

    def _answer(self, address: str, asked: Command) -> Command:
        """Raises OSError, RemoteProtocolError."""
        frames = FrameBuffer(REMOTING)

        def read(data: bytes) -> Command | None:
            commands = (decode_command(frame) for frame in frames.receive(data))
            return next((each for each in commands if each.is_answer), None)

        if self._sign is not None:
            header = replace(asked.header, ext_fields=self._sign(asked.header.ext_fields, asked.body))
            asked = replace(asked, header=header)
        return ask(address, asked.encode(), read, timeout_s=ANSWER_S, sealing=self._sealing)

    def given_up(self, files: FilesReader, *, keeps: bool) -> Sequence[Operation]:
        """What leaves of the store its identity alone."""
        options = self._options
        file_bytes = options.mapped_file_size_commit_log
        return given_up(files, log_folder(options), file_bytes, keeps=keeps)


def _finding(found: RepairStanding) -> RepairFinding:
    return RepairFinding(found.may is May.YES, found.may is May.SOON, found.why, found.master)
