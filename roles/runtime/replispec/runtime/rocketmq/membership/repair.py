"""Whether a member of a broker set may give up its log to copy it again under its id, and what that takes.

An empty log under an id of the SyncStateSet could be elected, and everybody else would be cut to it. So the
controller is asked first: another broker has to be master, alive, and this one out of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import beyond
from replispec.runtime.rocketmq.membership.answers import read_quietly
from replispec.runtime.rocketmq.remoting.answers import is_granted
from replispec.runtime.storage import FilesReader, Operation, RemoveFile, RenameFile, ReplaceFile
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import BrokerNames, BrokerReplicasInfo, ReplicasInfo
from replispec.wire.rocketmq.machines.replicas_manager import LeaderNamed
from replispec.wire.rocketmq.machines.replicas_manager_wire import leader_asked, outcome_of
from replispec.wire.rocketmq.remoting import RemotingHeader

_KEPT: Final = (constants.IDENTITY_FILE, constants.IDENTITY_TEMPORARY_FILE)


class May(Enum):
    """Whether a member may give up its log."""

    YES = "yes"
    SOON = "soon"
    NO = "no"
    UNSAID = "unsaid"


class RepairStanding(NamedTuple):
    """Whether a member may give up its log, and why, in words; `master`: whom it will copy, ADDRESS:PORT."""

    may: May
    why: str
    master: str = ""


def question(broker_name: str) -> Command:
    """Asks a controller for the members of a set."""
    body = BrokerNames(names=[broker_name]).encode()
    return Command(RemotingHeader(code=RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, opaque=1), body)


def leader_question() -> Command:
    """Asks a controller which of them leads."""
    call = leader_asked()
    fields = call.header.to_ext_fields()
    return Command(RemotingHeader(code=call.code, opaque=1, ext_fields=fields), call.body)


def leader_named(answer: Command) -> str:
    """Whom a controller names as the one that leads, ADDRESS:PORT; empty for nobody."""
    code = leader_asked().code
    named, _ = read_quietly(answer, lambda *said: outcome_of(code, *said))
    return (named.controller_leader_address or "") if isinstance(named, LeaderNamed) else ""


def standing(answer: Command, broker_name: str, broker_id: int) -> RepairStanding:
    """What a controller's answer means for a member. Raises RemoteProtocolError."""
    header = answer.header
    if not is_granted(answer):
        return RepairStanding(May.UNSAID, f"it refuses to say ({header.code} {header.remark or ''})")
    table = BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}
    found = table.get(broker_name)
    if found is None:
        return RepairStanding(May.NO, f"the controller knows no set {broker_name}: its records may be lost")
    return _standing_in(found, broker_id)


def _standing_in(found: ReplicasInfo, broker_id: int) -> RepairStanding:
    members = {each.broker_id: each for each in found.in_sync_replicas or ()}
    others = {each.broker_id for each in found.not_in_sync_replicas or ()}
    listed = " ".join(str(each) for each in sorted(each or 0 for each in members))
    master = members.get(found.master_broker_id)
    if broker_id not in members and broker_id not in others:
        return RepairStanding(
            May.NO,
            f"the controller does not know the id {broker_id}: move the whole store aside, and this member "
            "comes back with a new id and a copy",
        )
    if found.master_broker_id == broker_id or (broker_id in members and len(members) == 1):
        return RepairStanding(
            May.NO,
            f"this member is the master, or the last of the SyncStateSet [{listed}]: what it has may be "
            "nowhere else. `replispec check-store` tells what is left of it",
        )
    if not found.master_broker_id or master is None or not master.alive:
        return RepairStanding(May.SOON, "no other member is master and alive: there is nobody to copy from")
    if broker_id in members:
        return RepairStanding(
            May.SOON,
            f"this member is still in the SyncStateSet [{listed}]: its master asks it out when it has missed "
            "it for haMaxTimeSlaveNotCatchup",
        )
    where = f"in masterEpoch {found.master_epoch}, the set is [{listed}]"
    why = f"broker {found.master_broker_id} is master {where}"
    return RepairStanding(May.YES, why, found.master_address or "")


def outlasted(found: RepairStanding, out_s: float, period_s: float) -> RepairStanding:
    """The same for a member that has been out of the set for so long.

    It may have been asked in before that, by a question that is still on its way for as long as the period
    (alterationDoubtPeriod): an empty log may not live before that cannot be decided any more.
    """
    if found.may is not May.YES or out_s >= period_s:
        return found
    why = f"what the master asked before may be decided for {period_s:g} s yet (alterationDoubtPeriod)"
    return RepairStanding(May.SOON, why)


def given_up(files: FilesReader, log_folder: str, file_bytes: int, *, keeps: bool) -> Sequence[Operation]:
    """What leaves of a store its identity alone, in order; with `keeps` the rest is put into a folder of it.

    First the note of what was on the disk is one with which every start is refused (the one that was there is
    kept beside), then the commit log goes, and that note last: so that a start in between is refused, whether
    there was a note or not; then the same is done again. Nothing when there is nothing but an identity.
    """
    logs = [f"{log_folder}/{name}" for name in reversed(files.names(log_folder))]
    names = list(logs)
    for folder in _folders():
        inside = [f"{folder}/{name}" if folder else name for name in files.names(folder)]
        names += [each for each in inside if each not in (*_KEPT, constants.FLUSHED_FILE)]
    note = files.read(constants.FLUSHED_FILE)
    first: list[Operation] = []
    last = [] if note is None and not logs else [RemoveFile(constants.FLUSHED_FILE)]
    if keeps:
        aside = aside_of(files, log_folder)
        if note is not None:
            first.append(ReplaceFile(f"{aside}/{constants.FLUSHED_FILE}", note))
    if logs:
        first.append(beyond(_limit(logs, log_folder, file_bytes)))
    if keeps:
        return [*first, *(RenameFile(name, f"{aside}/{name}") for name in names), *last]
    return [*first, *map(RemoveFile, names), *last]


def _limit(logs: Sequence[str], log_folder: str, file_bytes: int) -> int:
    """Where the newest file of a log would end if it were full."""
    starts = [name.removeprefix(f"{log_folder}/") for name in logs]
    return max((int(name) for name in starts if name.isdecimal()), default=0) + file_bytes


def aside_of(files: FilesReader, log_folder: str) -> str:
    """The first folder of such a name that holds nothing."""
    number = 1
    while any(
        files.names(f"{constants.ASIDE_FOLDER}{number}/{folder}".rstrip("/"))
        for folder in (log_folder, *_folders())
    ):
        number += 1
    return f"{constants.ASIDE_FOLDER}{number}"


def _folders() -> tuple[str, ...]:
    """The folders of a store but that of its log; the store itself is the last."""
    return constants.INDEX_FOLDER, constants.TOPICS_FILE.rpartition("/")[0], ""
