"""Named faults of a controller: each is the good one with as little as possible overridden.

Here are those of what is answered and of 1001; those of identities, elections and frames have files of their
own. A docstring says what is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    SyncStateSet,
)
from tests.conformance.subjects.controller import ids_in
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.records import (
    Answer,
    BrokerSet,
    Refused,
)

F = TypeVar("F", bound=type[GoodController])
FAULTS: dict[str, type[GoodController]] = {}


def fault(subject: F) -> F:
    """Enter a class under its name, in words with hyphens."""
    assert subject.__doc__, f"what is wrong with {subject.__name__}?"
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in subject.__name__)
    FAULTS[name.lstrip("-")] = subject
    return subject


# What is answered, whatever was decided

WRONG_CODES = (
    ResponseCode.SUCCESS,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
    ResponseCode.NO_PERMISSION,
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
    ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH,
    ResponseCode.CONTROLLER_INVALID_MASTER,
    ResponseCode.CONTROLLER_INVALID_REPLICAS,
    ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE,
    ResponseCode.CONTROLLER_INVALID_REQUEST,
    ResponseCode.CONTROLLER_BROKER_NOT_ALIVE,
    ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST,
    ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA,
    ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED,
    ResponseCode.CONTROLLER_MASTER_STILL_EXIST,
    ResponseCode.CONTROLLER_ELECT_MASTER_FAILED,
    ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED,
    ResponseCode.CONTROLLER_BROKER_ID_INVALID,
)
ANSWER_KEYS = (
    (RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, "newSyncStateSetEpoch"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "masterBrokerId"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "masterAddress"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "masterEpoch"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "syncStateSetEpoch"),
    (RequestCode.CONTROLLER_REGISTER_BROKER, "masterBrokerId"),
    (RequestCode.CONTROLLER_REGISTER_BROKER, "masterAddress"),
    (RequestCode.CONTROLLER_REGISTER_BROKER, "masterEpoch"),
    (RequestCode.CONTROLLER_REGISTER_BROKER, "syncStateSetEpoch"),
    (RequestCode.CONTROLLER_GET_REPLICA_INFO, "masterBrokerId"),
    (RequestCode.CONTROLLER_GET_REPLICA_INFO, "masterAddress"),
    (RequestCode.CONTROLLER_GET_REPLICA_INFO, "masterEpoch"),
    (RequestCode.CONTROLLER_GET_METADATA_INFO, "isLeader"),
    (RequestCode.CONTROLLER_GET_METADATA_INFO, "controllerLeaderAddress"),
    (RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, "nextBrokerId"),
)
BODIED = (
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    RequestCode.CONTROLLER_ELECT_MASTER,
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RequestCode.CONTROLLER_GET_REPLICA_INFO,
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
    RequestCode.GET_CONTROLLER_CONFIG,
)
EPOCH_KEYS = (
    (RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, "newSyncStateSetEpoch"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "masterEpoch"),
    (RequestCode.CONTROLLER_ELECT_MASTER, "syncStateSetEpoch"),
    (RequestCode.CONTROLLER_REGISTER_BROKER, "masterEpoch"),
    (RequestCode.CONTROLLER_GET_REPLICA_INFO, "masterEpoch"),
    (RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, "nextBrokerId"),
)


def wrong_code(code: ResponseCode) -> type[GoodController]:
    """Answers the number after the right code; what it does is right."""

    class WrongCode(GoodController):
        def answer_to(self, request: Command) -> Answer:
            answer = super().answer_to(request)
            return replace(answer, code=answer.code + 1) if answer.code == code else answer

    return WrongCode


def lacks_field(request_code: RequestCode, key: str) -> type[GoodController]:
    """Leaves one field out of the header of its answers."""

    class LacksField(GoodController):
        def answer_command(self, request: Command, answer: Answer) -> Command:
            command = super().answer_command(request, answer)
            if request.header.code == request_code and command.header.ext_fields:
                command.header.ext_fields.pop(key, None)
            return command

    return LacksField


def off_by_one(request_code: RequestCode, key: str) -> type[GoodController]:
    """Answers a number that is one too great; what it records is right."""

    class OffByOne(GoodController):
        def answer_command(self, request: Command, answer: Answer) -> Command:
            command = super().answer_command(request, answer)
            fields = command.header.ext_fields or {}
            text = fields.get(key)
            if request.header.code == request_code and text is not None:
                fields[key] = str(int(text) + 1)
            return command

    return OffByOne


def lacks_body(request_code: RequestCode) -> type[GoodController]:
    """Answers without a body."""

    class LacksBody(GoodController):
        def answer_to(self, request: Command) -> Answer:
            answer = super().answer_to(request)
            return replace(answer, body=b"") if request.header.code == request_code else answer

    return LacksBody


FAULTS |= {f"code-{code.value}-is-wrong": wrong_code(code) for code in WRONG_CODES}
FAULTS |= {f"{code.value}-lacks-{key}": lacks_field(code, key) for code, key in ANSWER_KEYS}
FAULTS |= {f"{code.value}-lacks-its-body": lacks_body(code) for code in BODIED}
FAULTS |= {f"{code.value}-{key}-is-one-too-great": off_by_one(code, key) for code, key in EPOCH_KEYS}


# 1001


@fault
class AcceptsStaleMasterEpoch(GoodController):
    """A master of an earlier epoch may alter the set."""

    def check_master_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        super().check_master_epoch(broker_set, max(epoch, broker_set.master_epoch))


@fault
class AcceptsLaterMasterEpoch(GoodController):
    """A master of an epoch that never was may alter the set."""

    def check_master_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        super().check_master_epoch(broker_set, min(epoch, broker_set.master_epoch))


@fault
class AcceptsStaleSyncStateSetEpoch(GoodController):
    """A request on top of an earlier set is taken."""

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        super().check_set_epoch(broker_set, max(epoch, broker_set.in_sync_epoch))


@fault
class AcceptsLaterSyncStateSetEpoch(GoodController):
    """A request on top of a set that never was is taken."""

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        super().check_set_epoch(broker_set, min(epoch, broker_set.in_sync_epoch))


@fault
class AcceptsAnyMaster(GoodController):
    """Whoever says so is the master."""

    def check_master(self, broker_set: BrokerSet, master: int) -> None:
        if broker_set.master is None:
            super().check_master(broker_set, master)


@fault
class FailsWithoutMaster(GoodController):
    """1001 on a set without a master ends in an error of the controller (5.1.1 to 5.1.3 did this)."""

    def check_master(self, broker_set: BrokerSet, master: int) -> None:
        if broker_set.master is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, "null")
        super().check_master(broker_set, master)


@fault
class AcceptsUnregisteredMember(GoodController):
    """A member of the set need not be registered."""

    def check_registered(self, broker_set: BrokerSet, broker: int) -> None:
        pass

    def check_member_alive(self, broker_set: BrokerSet, broker: int) -> None:
        if broker in broker_set.members:
            super().check_member_alive(broker_set, broker)


@fault
class AcceptsDeadMember(GoodController):
    """A member of the set need not be alive."""

    def check_member_alive(self, broker_set: BrokerSet, broker: int) -> None:
        pass


@fault
class AcceptsSetWithoutMaster(GoodController):
    """The master may be left out of the set."""

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass


@fault
class AcceptsUnchangedSet(GoodController):
    """The recorded set is recorded again."""

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass


@fault
class ChecksChangeLast(GoodController):
    """The recorded set is refused after all other checks."""

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().check_master_stays(broker_set, members)
        super().check_changed(broker_set, members)


@fault
class ChecksSetEpochFirst(GoodController):
    """The set's epoch is compared before the master is."""

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        pass

    def alter_sync_state_set(self, request: Command) -> Answer:
        new = SyncStateSet.decode(request.body)
        fields = request.header.ext_fields or {}
        broker_set = self.sets.get(fields.get("brokerName") or "")
        if broker_set is not None:
            super().check_changed(broker_set, ids_in(new))
            self.check_set_epoch(broker_set, new.sync_state_set_epoch or 0)
        return super().alter_sync_state_set(request)


@fault
class DropsMasterFromSet(GoodController):
    """What is recorded lacks the master."""

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        others = [broker for broker in members if broker != broker_set.master]
        super().change_in_sync(broker_set, others or members)


@fault
class RecordsNothing(GoodController):
    """1001 answers the new set and forgets it."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        before = {name: (one.in_sync, one.in_sync_epoch) for name, one in self.sets.items()}
        answer = super().alter_sync_state_set(request)
        for name, (in_sync, epoch) in before.items():
            self.sets[name].in_sync, self.sets[name].in_sync_epoch = in_sync, epoch
        return answer


@fault
class RecordsRefusedSet(GoodController):
    """A set with an unregistered member is refused, and recorded."""

    def check_registered(self, broker_set: BrokerSet, broker: int) -> None:
        if broker not in broker_set.members:
            self.change_in_sync(broker_set, [*broker_set.in_sync, broker])
        super().check_registered(broker_set, broker)


@fault
class SetEpochGrowsByTwo(GoodController):
    """Every change of the set counts twice."""

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().change_in_sync(broker_set, members)
        broker_set.in_sync_epoch += 1


@fault
class SetEpochStandsStill(GoodController):
    """1001 changes the set under its old epoch."""

    def alter_sync_state_set(self, request: Command) -> Answer:
        self.altering = True
        try:
            return super().alter_sync_state_set(request)
        finally:
            self.altering = False

    altering = False

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        super().change_in_sync(broker_set, members)
        broker_set.in_sync_epoch -= self.altering
