"""A broker's or learner's store, checked as its start would, and further behind the first damage."""

from __future__ import annotations

from collections.abc import Callable

from replispec.broker.rocketmq.core.table_file import unsealed
from replispec.cli.stores import DAMAGED, TORN, WHOLE, StoredFile, StoreReport
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.log.checking import CheckedLog, check_log
from replispec.runtime.rocketmq.log.flushed_file import read_mark
from replispec.runtime.rocketmq.membership.asked_set import decode_asked_set
from replispec.runtime.storage import FilesReader
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicConfigTable
from replispec.wire.rocketmq.client import ConsumerOffsetTable
from replispec.wire.rocketmq.store import BrokerIdentity, EpochFile


def _epochs(data: bytes) -> str:
    entries = EpochFile.decode(data).entries
    return "epochs " + (" ".join(f"{each.epoch}@{each.start_offset}" for each in entries) or "none")


def _topics(data: bytes) -> str:
    return f"{len(TopicConfigTable.decode(unsealed(data)).topic_config_table or {})} topics"


def _offsets(data: bytes) -> str:
    return f"{len(ConsumerOffsetTable.decode(unsealed(data)).offset_table or {})} groups with topics"


def _asked(data: bytes) -> str:
    asked = decode_asked_set(data)
    members = " ".join(map(str, sorted(asked.members)))
    return f"asked for the set {members} in epoch {asked.epoch}, in place of set epoch {asked.set_epoch}"


READERS: dict[str, Callable[[bytes], str]] = {
    constants.FLUSHED_FILE: lambda data: f"the log was on the disk up to {read_mark(data).offset}",
    constants.EPOCH_FILE: _epochs,
    constants.EPOCH_COPY_FILE: _epochs,
    constants.ASKED_SET_FILE: _asked,
    constants.IDENTITY_FILE: lambda data: f"id {BrokerIdentity.decode(data).broker_id}",
    constants.TOPICS_FILE: _topics,
    constants.CONSUMER_OFFSETS_FILE: _offsets,
}
ELSEWHERE = (
    "is another broker of the set master: `replispec admin repair -c FILE`, then start: a copy comes back (a"
    " broker of Apache RocketMQ: move the folder aside and start)"
)
ALONE = "is this the only copy: keep one of the folder, then `replispec check-store FOLDER --accept-loss`"
ASKED = (
    f"move {constants.ASKED_SET_FILE} aside once this broker has been down for longer than"
    " alterationDoubtPeriod, and start"
)
OPTIONAL = (constants.FLUSHED_FILE, constants.EPOCH_COPY_FILE)
"""What a start does without."""


def check(files: FilesReader) -> StoreReport | None:
    """What is found in a folder; None when it is no store. Raises StorageFailed."""
    small = [_small(files, name, read) for name, read in READERS.items()]
    found = [each for each in small if each is not None]
    if not found and not files.names(constants.COMMIT_LOG_FOLDER):
        return None
    log = check_log(files, constants.COMMIT_LOG_FOLDER)
    others = [each for each in found if each.damage and each.name not in OPTIONAL]
    epochs = {each.name: not each.damage for each in found if each.name.startswith(constants.EPOCH_FILE)}
    if epochs.get(constants.EPOCH_COPY_FILE) and others:
        others = [each for each in others if each.name != constants.EPOCH_FILE]
    is_damaged = bool(log.damage or others)
    verdict = DAMAGED if is_damaged else TORN if log.torn_bytes else WHOLE
    is_java = files.read(constants.CHECKPOINT_FILE) is not None
    return StoreReport(
        "a store of Apache RocketMQ" if is_java else "a store",
        verdict,
        log.end,
        None if log.mark is None else log.mark.offset,
        log.messages,
        log.behind,
        [*_log_files(log), *found],
        _advice(log, others),
        () if is_java or not log.may_be_accepted else log.accepted(),
    )


def _small(files: FilesReader, name: str, read: Callable[[bytes], str]) -> StoredFile | None:
    data = files.read(name)
    if data is None:
        return None
    try:
        return StoredFile(name, len(data), read(data))
    except RemoteProtocolError as error:
        return StoredFile(name, len(data), "cannot be read", [str(error)])


def _log_files(log: CheckedLog) -> list[StoredFile]:
    return [
        StoredFile(each.name, each.size, f"{each.messages} messages, bytes up to {each.used}", each.damage)
        for each in log.files
    ]


def _advice(log: CheckedLog, others: list[StoredFile]) -> list[str]:
    if log.damage:
        return [ELSEWHERE, ALONE]
    if [each.name for each in others] == [constants.ASKED_SET_FILE]:
        return [ASKED]
    if others:
        names = ", ".join(each.name for each in others)
        return [ELSEWHERE, f"or put {names} back from a copy; the log itself is whole"]
    if log.torn_bytes:
        return [f"start it: {log.torn_bytes} bytes behind the end are a torn tail and will be cut"]
    return ["nothing to do"]
