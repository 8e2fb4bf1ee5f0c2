"""Faults of a controller about identities, and in its answers to questions; entered in FAULTS too."""

from __future__ import annotations

from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.controller import (
    BrokerNames,
    BrokerReplicasInfo,
    GetMetadataResponse,
    ReplicasInfo,
    SyncStateSet,
)
from tests.conformance.subjects.controller_admin import GoodController
from tests.conformance.subjects.controller_faults import fault
from tests.conformance.subjects.records import Answer, BrokerSet, Member, Refused

# Identities


@fault
class GrantsUsedId(GoodController):
    """An id is granted to whoever asks."""

    def may_grant(self, name: str, broker: int) -> bool:  # noqa: ARG002
        return True


@fault
class GrantsAnyFreeId(GoodController):
    """Ids need not be granted in order (Apache's rule, with the counter of the greatest one)."""

    def may_grant(self, name: str, broker: int) -> bool:
        return name not in self.sets or broker not in self.sets[name].members


@fault
class ReservesNextId(GoodController):
    """Whoever asks for the next id has it: the next one is told another."""

    def get_next_broker_id(self, request: Command) -> Answer:
        answer = super().get_next_broker_id(request)
        name = (request.header.ext_fields or {}).get("brokerName") or ""
        self.granted[name] = self.granted.get(name, 0) + 1
        return answer

    def may_grant(self, name: str, broker: int) -> bool:
        return broker <= self.next_id(name) and not (name in self.sets and broker in self.sets[name].members)


@fault
class CountsIdsFromZero(GoodController):
    """The first id of a set is 0."""

    def next_id(self, name: str) -> int:
        return super().next_id(name) - 1


@fault
class ForgetsCheckCode(GoodController):
    """An application that is repeated with its own check code is refused."""

    def same_owner(self, held: Member, check_code: str) -> bool:  # noqa: ARG002
        return False


@fault
class IgnoresCheckCode(GoodController):
    """An application for a held id is taken for a repetition, whoever sends it."""

    def same_owner(self, held: Member, check_code: str) -> bool:  # noqa: ARG002
        return True


@fault
class RepetitionCountsAgain(GoodController):
    """A repeated application is granted, and the counter moves."""

    def same_owner(self, held: Member, check_code: str) -> bool:
        same = super().same_owner(held, check_code)
        if same:
            for name, broker_set in self.sets.items():
                self.granted[name] += held in broker_set.members.values()
        return same


@fault
class RegistersUnknownId(GoodController):
    """1003 takes an id that was never applied for."""

    def register_broker(self, request: Command) -> Answer:
        fields = request.header.ext_fields or {}
        broker_set = self.sets.get(fields.get("brokerName") or "")
        if broker_set is not None and fields.get("brokerId"):
            broker_set.members.setdefault(int(fields["brokerId"] or 0), Member("", ""))
        return super().register_broker(request)


@fault
class RegistersUnknownSet(GoodController):
    """1003 makes a set that nobody applied in."""

    def register_broker(self, request: Command) -> Answer:
        fields = request.header.ext_fields or {}
        name, broker = fields.get("brokerName"), fields.get("brokerId")
        if name and broker and name not in self.sets:
            self.sets[name] = BrokerSet(name, fields.get("clusterName") or "", {int(broker): Member("", "")})
        return super().register_broker(request)


@fault
class KeepsOldAddress(GoodController):
    """1003 does not record a changed address."""

    def note_address(self, member: Member, address: str) -> None:
        pass


@fault
class AddressChangesSet(GoodController):
    """A changed address counts as a change of the SyncStateSet."""

    def note_address(self, member: Member, address: str) -> None:
        if member.address != address:
            for broker_set in self.sets.values():
                broker_set.in_sync_epoch += member in broker_set.members.values()
        super().note_address(member, address)


@fault
class ShowsDeadMaster(GoodController):
    """1003 names a master whose heartbeats stopped; nobody is elected in his place."""

    def shows_master(self, broker_set: BrokerSet, master: int) -> bool:  # noqa: ARG002
        return True

    def lose_master(self, broker_set: BrokerSet) -> None:
        pass


@fault
class HidesMaster(GoodController):
    """1003 names no master."""

    def shows_master(self, broker_set: BrokerSet, master: int) -> bool:  # noqa: ARG002
        return False


# Questions


@fault
class KnowsEverySet(GoodController):
    """1004 answers about a set that nobody knows."""

    def get_replica_info(self, request: Command) -> Answer:
        try:
            return super().get_replica_info(request)
        except Refused:
            return Answer(body=SyncStateSet(broker_ids=[], sync_state_set_epoch=0).encode())


@fault
class ShowsUnknownSets(GoodController):
    """1006 shows an empty entry for a name that nobody knows."""

    def get_sync_state_data(self, request: Command) -> Answer:
        answer = super().get_sync_state_data(request)
        table = {name: ReplicasInfo([], []) for name in BrokerNames.decode(request.body).names or []}
        table |= BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}
        return Answer(body=BrokerReplicasInfo(replicas_info_table=table).encode())


@fault
class ShowsUnnamedSets(GoodController):
    """1006 shows every set that there is."""

    def shown(self, names: list[str]) -> list[str]:  # noqa: ARG002
        return list(self.sets)


@fault
class NamesNoLeader(GoodController):
    """1005 tells of no active controller, although this one serves."""

    def get_metadata(self, _request: Command) -> Answer:
        return Answer(header=GetMetadataResponse(group="subjects", is_leader=False))


@fault
class ForgetsConfiguration(GoodController):
    """1009 answers and changes nothing."""

    def update_config(self, request: Command) -> Answer:
        before = dict(self.properties)
        answer = super().update_config(request)
        self.properties = before
        return answer


@fault
class TakesWordsForNumbers(GoodController):
    """1009 writes down whatever stands there, and 1010 tells it."""

    def is_value(self, name: str, value: str) -> bool:  # noqa: ARG002  whatever it is
        return True


@fault
class ChangesFixedProperties(GoodController):
    """1009 changes what is fixed at the start."""

    def check_changeable(self, changes: dict[str, str]) -> None:
        pass
