"""A small controller that behaves as the clauses demand, seen from a broker.

One process, in memory, always the active one of its group. It is a core: commands and times in, effects
out. Where Apache RocketMQ differs from a clause it follows the clause. Every decision is a small method, so
that a fault is one that is overridden.
Source: RIP-44, RIP "persistent broker id"; apache/rocketmq 5.1.1 to 5.5.0, ReplicasInfoManager.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from replispec.runtime.primitives.texts import INT64, parse_integer
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    ApplyBrokerIdRequest,
    ApplyBrokerIdResponse,
    BrokerHeartbeatRequest,
    BrokerMemberGroup,
    ElectMasterRequest,
    ElectMasterResponse,
    ElectMasterResponseBody,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    NotifyBrokerRoleChangedRequest,
    RegisterBrokerToControllerRequest,
    RegisterBrokerToControllerResponse,
    SyncStateSet,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.conformance.subjects.answering import Answering
from tests.conformance.subjects.records import (
    Alive,
    Answer,
    BrokerSet,
    Channel,
    Effect,
    Hearing,
    Member,
    Refused,
    Tell,
    need,
)

HEARTBEAT_TIMEOUT_MS = 10_000
LAST_PRIORITY = 2**31 - 1
HEARING_S = 1.5
LETTING_GO_S = 0.5
LATER_S = 0.001
"""Heartbeats are in time up to the end of their timeout, the end included."""


def ids_in(new: SyncStateSet) -> list[int]:
    """The members of a set; Java takes numbers in quotes for numbers. Raises RemoteProtocolError."""
    if new.addresses is not None:
        return [parse_integer(text, INT64, "the new set") for text in new.addresses]
    return need(new.broker_ids, "the new set")


class Controller(Answering):
    """What brokers ask a controller. `now_s` is any clock in seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        super().__init__()
        self.now_s = now_s
        self.sets: dict[str, BrokerSet] = {}
        self.granted: dict[str, int] = {}
        """The greatest id that was ever granted in a set; it survives the removal of the set."""
        self.alive: dict[tuple[str, int], Alive] = {}
        self.hearings: dict[str, Hearing] = {}
        self.emptied: dict[str, BrokerSet] = {}
        """Sets without anybody, whose epochs go on when the name is used again."""
        self.handlers |= {
            RequestCode.BROKER_HEARTBEAT: self.heartbeat,
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self.alter_sync_state_set,
            RequestCode.CONTROLLER_ELECT_MASTER: self.elect_master,
            RequestCode.CONTROLLER_REGISTER_BROKER: self.register_broker,
            RequestCode.CONTROLLER_GET_REPLICA_INFO: self.get_replica_info,
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self.get_next_broker_id,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self.apply_broker_id,
        }

    # Time and connections

    def connection_ended(self, waiting_bytes: int, channel: Channel) -> list[Effect]:  # noqa: ARG002
        """Whoever spoke on this connection counts as dead at once."""
        return self.lose([key for key, entry in self.alive.items() if entry.channel == channel])

    def deadline_s(self) -> float:
        """When the next heartbeats are too late."""
        ends = [entry.last_s + entry.timeout_s + LATER_S for entry in self.alive.values()]
        ends += [hearing.until_s for hearing in self.hearings.values()]
        return min((end for end in ends if end > self.now_s()), default=math.inf)

    def tick(self) -> list[Effect]:
        """Whoever's heartbeats stopped counts as dead."""
        late = [key for key, entry in self.alive.items() if not self.in_time(entry)]
        over = [name for name, hearing in self.hearings.items() if self.now_s() >= hearing.until_s]
        for name in over:
            if self.hearings[name].growing and not self.hearings[name].letting_go:
                self.let_go(name)
            else:
                self.end_hearing(name)
        return self.lose(late)

    def lose(self, brokers: list[tuple[str, int]]) -> list[Effect]:
        """Brokers are gone; of those that are masters each has a successor elected, or none."""
        for key in brokers:
            del self.alive[key]
        for name, broker in brokers:
            broker_set = self.sets.get(name)
            if broker_set is not None and broker_set.master == broker:
                self.master_lost(broker_set)
        for name, broker in brokers:
            self.heard(name, broker)
        pending, self.pending = self.pending, []
        return pending

    def master_lost(self, broker_set: BrokerSet) -> None:
        """Hear the living members once more, if one is to be chosen of several."""
        candidates = self.candidates(broker_set)
        if len(candidates) > 1:
            self.hearings[broker_set.name] = Hearing(set(candidates), self.now_s() + HEARING_S)
        else:
            self.replace_lost_master(broker_set)

    def heard(self, name: str, broker: int, *, copying: bool = False) -> None:
        """A broker was heard, or will not be heard any more; the last of a hearing decides it."""
        hearing = self.hearings.get(name)
        if hearing is None:
            return
        if copying:
            hearing.left.add(broker)
            hearing.growing.add(broker)
            return
        hearing.left.discard(broker)
        hearing.growing.discard(broker)
        back = hearing.letting_go and broker == self.sets[name].master
        if back or not hearing.left:
            self.end_hearing(name)
        if back:
            self.notify(self.sets[name])

    def let_go(self, name: str) -> None:
        """Members still copy from the lost master: they are told that it is missed."""
        hearing = self.hearings[name]
        hearing.letting_go, hearing.left = True, set(hearing.growing)
        hearing.until_s = self.now_s() + LETTING_GO_S
        self.notify(self.sets[name])

    def missed(self, name: str) -> bool:
        """Whether the recorded master is to be let go of."""
        hearing = self.hearings.get(name)
        return hearing is not None and hearing.letting_go

    def end_hearing(self, name: str) -> None:
        """Elect, unless somebody else did, or the master is back."""
        del self.hearings[name]
        broker_set = self.sets.get(name)
        master = broker_set.master if broker_set is not None else None
        if broker_set is not None and master is not None and not self.is_alive(broker_set, master):
            self.replace_lost_master(broker_set)

    # Broker sets and who is alive

    def known(self, name: str | None, otherwise: ResponseCode) -> BrokerSet:
        """The set of this name. Raises Refused with the code when nobody was ever registered in it."""
        broker_set = self.sets.get(need(name, "the broker's name"))
        if broker_set is None:
            raise Refused(otherwise, f"broker set {name} is not known")
        return broker_set

    def is_alive(self, broker_set: BrokerSet, broker: int) -> bool:
        """Whether heartbeats of this broker are in time."""
        entry = self.alive.get((broker_set.name, broker))
        return entry is not None and self.in_time(entry)

    def in_time(self, entry: Alive) -> bool:
        """Whether this heartbeat still counts."""
        return self.now_s() <= entry.last_s + entry.timeout_s

    def heartbeat(self, request: Command) -> Answer:
        """904: the newest heartbeat counts, and so does the connection that it came on."""
        beat = BrokerHeartbeatRequest.from_ext_fields(request.header.ext_fields or {})
        if beat.broker_id is None:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REQUEST, "a heartbeat without a broker id")
        name = need(beat.broker_name, "the broker's name")
        timeout_ms = (
            HEARTBEAT_TIMEOUT_MS if beat.heartbeat_timeout_mills is None else beat.heartbeat_timeout_mills
        )
        self.alive[name, beat.broker_id] = Alive(
            channel=self.channel,
            last_s=self.now_s(),
            timeout_s=timeout_ms / 1000,
            epoch=-1 if beat.epoch is None else beat.epoch,
            max_offset=-1 if beat.max_offset is None else beat.max_offset,
            priority=LAST_PRIORITY if beat.election_priority is None else beat.election_priority,
        )
        self.heard(name, beat.broker_id, copying=bool(beat.copying))
        return Answer(remark="heartbeat taken")

    # Identities

    def next_id(self, name: str) -> int:
        """The id that is granted next."""
        return self.granted.get(name, 0) + 1

    def get_next_broker_id(self, request: Command) -> Answer:
        """1012: reserves nothing."""
        ask = GetNextBrokerIdRequest.from_ext_fields(request.header.ext_fields or {})
        name = need(ask.broker_name, "the broker's name")
        return Answer(header=GetNextBrokerIdResponse(ask.cluster_name, name, self.next_id(name)))

    def apply_broker_id(self, request: Command) -> Answer:
        """1013: the next id is granted, and an id again to whoever holds it."""
        ask = ApplyBrokerIdRequest.from_ext_fields(request.header.ext_fields or {})
        name, cluster = need(ask.broker_name, "the broker's name"), need(ask.cluster_name, "the cluster")
        broker = need(ask.applied_broker_id, "the id applied for")
        check_code = need(ask.register_check_code, "the check code")
        held = self.sets[name].members.get(broker) if name in self.sets else None
        if held is not None and self.same_owner(held, check_code):
            return Answer(header=ApplyBrokerIdResponse(cluster, name))
        if not self.may_grant(name, broker):
            offer = GetNextBrokerIdResponse(cluster, name, self.next_id(name))
            raise Refused(ResponseCode.CONTROLLER_BROKER_ID_INVALID, f"{broker} is not free", header=offer)
        broker_set = self.sets.setdefault(name, self.emptied.pop(name, BrokerSet(name, cluster)))
        broker_set.members[broker] = Member(check_code.split(";")[0], check_code)
        self.note_granted(name, broker)
        return Answer(header=ApplyBrokerIdResponse(cluster, name))

    def same_owner(self, held: Member, check_code: str) -> bool:
        """Whether an application comes from the broker that holds the id."""
        return held.check_code == check_code

    def may_grant(self, name: str, broker: int) -> bool:
        """Whether an id that nobody with this check code holds is granted."""
        return broker == self.next_id(name)

    def note_granted(self, name: str, broker: int) -> None:
        """Remember an id as granted for ever."""
        self.granted[name] = max(self.granted.get(name, 0), broker)

    def register_broker(self, request: Command) -> Answer:
        """1003: records the address, tells who is master if he lives."""
        ask = RegisterBrokerToControllerRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.known(ask.broker_name, ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        broker, address = need(ask.broker_id, "the broker's id"), need(ask.broker_address, "the address")
        if broker not in broker_set.members:
            raise Refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, f"no id {broker} here")
        self.note_address(broker_set.members[broker], address)
        header = RegisterBrokerToControllerResponse(ask.cluster_name, broker_set.name)
        master = broker_set.master
        if master is not None and self.shows_master(broker_set, master):
            header.master_broker_id, header.master_address = master, broker_set.address(master)
            header.master_epoch = broker_set.master_epoch
            header.sync_state_set_epoch = broker_set.in_sync_epoch
        return Answer(header=header, body=broker_set.sync_state_set().encode())

    def note_address(self, member: Member, address: str) -> None:
        """Record where a broker is reached now."""
        member.address = address

    def shows_master(self, broker_set: BrokerSet, master: int) -> bool:
        """Whether a registering broker is told about the recorded master."""
        return self.is_alive(broker_set, master)

    # The SyncStateSet

    def alter_sync_state_set(self, request: Command) -> Answer:
        """1001: the checks in their order, then the new set."""
        ask = AlterSyncStateSetRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.known(ask.broker_name, ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED)
        new = SyncStateSet.decode(request.body)
        members = ids_in(new)
        self.check_changed(broker_set, members)
        self.check_master(broker_set, need(ask.master_broker_id, "the master's id"))
        self.check_master_epoch(broker_set, need(ask.master_epoch, "the master's epoch"))
        self.check_set_epoch(broker_set, need(new.sync_state_set_epoch, "the set's epoch"))
        for broker in members:
            self.check_registered(broker_set, broker)
            self.check_member_alive(broker_set, broker)
        self.check_master_stays(broker_set, members)
        self.change_in_sync(broker_set, members)
        answer = AlterSyncStateSetResponse(broker_set.in_sync_epoch)
        return Answer(header=answer, body=broker_set.sync_state_set().encode())

    def change_in_sync(self, broker_set: BrokerSet, members: list[int]) -> None:
        """Record another SyncStateSet, with an epoch of its own."""
        broker_set.in_sync = list(dict.fromkeys(members))
        broker_set.in_sync_epoch += 1

    def check_changed(self, broker_set: BrokerSet, members: list[int]) -> None:
        """The recorded set is refused before all else."""
        if set(members) == set(broker_set.in_sync):
            raise Refused(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "this is the set")

    def check_master(self, broker_set: BrokerSet, master: int) -> None:
        """Only the recorded master may ask."""
        if master != broker_set.master:
            raise Refused(ResponseCode.CONTROLLER_INVALID_MASTER, f"the master is {broker_set.master}")

    def check_master_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        """Only in the recorded epoch."""
        if epoch != broker_set.master_epoch:
            raise Refused(ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, f"epoch {broker_set.master_epoch}")

    def check_set_epoch(self, broker_set: BrokerSet, epoch: int) -> None:
        """Only on top of the recorded set."""
        if epoch != broker_set.in_sync_epoch:
            code = ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
            raise Refused(code, f"epoch {broker_set.in_sync_epoch}")

    def check_registered(self, broker_set: BrokerSet, broker: int) -> None:
        """Members are registered."""
        if broker not in broker_set.members:
            raise Refused(ResponseCode.CONTROLLER_INVALID_REPLICAS, f"{broker} is not registered")

    def check_member_alive(self, broker_set: BrokerSet, broker: int) -> None:
        """Members are alive."""
        if not self.is_alive(broker_set, broker):
            raise Refused(ResponseCode.CONTROLLER_BROKER_NOT_ALIVE, f"{broker} is not alive")

    def check_master_stays(self, broker_set: BrokerSet, members: list[int]) -> None:
        """The master is a member."""
        if broker_set.master not in members:
            raise Refused(ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "without the master")

    # Elections

    def elect_master(self, request: Command) -> Answer:
        """1002: asked by a broker for itself, by an administrator, or (-1) as the controller would."""
        ask = ElectMasterRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.known(ask.broker_name, ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        by_broker = None if ask.broker_id in (None, -1) else ask.broker_id
        if broker_set.never_led and by_broker is not None:
            chosen = self.first_master(broker_set, by_broker)
        else:
            chosen = self.choose(broker_set, by_broker if ask.designate_elect else None)
        if chosen is not None and chosen == broker_set.master:
            body = ElectMasterResponseBody(sync_state_set=sorted(broker_set.in_sync)).encode()
            header = self.elected_header(broker_set)
            raise Refused(
                ResponseCode.CONTROLLER_MASTER_STILL_EXIST, "the master lives", header=header, body=body
            )
        if chosen is not None:
            self.become_master(broker_set, chosen)
            return self.elected(broker_set)
        if by_broker is not None:
            raise Refused(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, "nobody can be master")
        self.lose_master(broker_set)
        raise Refused(ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE, "nobody can be master")

    def first_master(self, broker_set: BrokerSet, broker: int) -> int | None:
        """In a set that never had a master, the registered broker that asks."""
        return broker if broker in broker_set.members else None

    def choose(self, broker_set: BrokerSet, preferred: int | None) -> int | None:
        """The master among the candidates: the preferred one or nobody, the present one, or the best."""
        candidates = self.candidates(broker_set)
        if preferred is not None:
            return preferred if preferred in candidates else None
        if broker_set.master in candidates:
            return broker_set.master
        return min(candidates, key=lambda broker: self.rank(broker_set, broker), default=None)

    def candidates(self, broker_set: BrokerSet) -> list[int]:
        """Who may become master: living members of the SyncStateSet."""
        return [broker for broker in broker_set.in_sync if self.is_alive(broker_set, broker)]

    def rank(self, broker_set: BrokerSet, broker: int) -> tuple[int, ...]:
        """Smaller is better: the later epoch, the longer log, the smaller priority."""
        entry = self.alive[broker_set.name, broker]
        return -entry.epoch, -entry.max_offset, entry.priority, broker

    def become_master(self, broker_set: BrokerSet, broker: int) -> None:
        """Record a new master, alone in the SyncStateSet, and tell everybody alive."""
        broker_set.master = broker
        broker_set.master_epoch += 1
        self.change_in_sync(broker_set, [broker])
        self.notify(broker_set)

    def lose_master(self, broker_set: BrokerSet) -> None:
        """Record that a lost master has no successor; the SyncStateSet stays."""
        if broker_set.master is not None:
            broker_set.master = None
            broker_set.master_epoch += 1

    def replace_lost_master(self, broker_set: BrokerSet) -> None:
        """Elect without being asked."""
        chosen = self.choose(broker_set, None)
        if chosen is None:
            self.lose_master(broker_set)
        else:
            self.become_master(broker_set, chosen)

    def elected_header(self, broker_set: BrokerSet) -> ElectMasterResponse:
        """Who is master, with both epochs."""
        return ElectMasterResponse(
            master_broker_id=broker_set.master,
            master_address=broker_set.address(broker_set.master),
            master_epoch=broker_set.master_epoch,
            sync_state_set_epoch=broker_set.in_sync_epoch,
        )

    def elected(self, broker_set: BrokerSet) -> Answer:
        """The answer to a successful election."""
        addresses = {broker: member.address for broker, member in broker_set.members.items()}
        body = ElectMasterResponseBody(
            BrokerMemberGroup(broker_set.cluster, broker_set.name, addresses), sorted(broker_set.in_sync)
        )
        return Answer(header=self.elected_header(broker_set), body=body.encode(bare_keys=True))

    def notify(self, broker_set: BrokerSet) -> None:
        """1008 to every living member, at its recorded address."""
        for broker, member in broker_set.members.items():
            if self.is_alive(broker_set, broker):
                self.pending.append(Tell(member.address, self.notification(broker_set).encode()))

    def notification(self, broker_set: BrokerSet) -> Command:
        """1008 as a command."""
        fields = NotifyBrokerRoleChangedRequest(
            master_address=broker_set.address(broker_set.master),
            master_broker_id=broker_set.master,
            master_epoch=broker_set.master_epoch,
            sync_state_set_epoch=broker_set.in_sync_epoch,
        )
        header = RemotingHeader(
            code=RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
            flag=RemotingFlag.ONEWAY,
            ext_fields=fields.to_ext_fields(),
        )
        return Command(header, broker_set.sync_state_set().encode())

    # Questions

    def get_replica_info(self, request: Command) -> Answer:
        """1004: who is master, alive or not."""
        ask = GetReplicaInfoRequest.from_ext_fields(request.header.ext_fields or {})
        broker_set = self.known(ask.broker_name, ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)
        header = GetReplicaInfoResponse(
            master_broker_id=broker_set.master,
            master_address=broker_set.address(broker_set.master),
            master_epoch=broker_set.master_epoch,
            master_missed=True if self.missed(broker_set.name) else None,
        )
        return Answer(header=header, body=broker_set.sync_state_set().encode())
