"""One broker group with its controller, name server and clients, that writes its own traffic.

A `World` behaves like Apache RocketMQ 5.4.0 and keeps count of what a judge of its traffic must
evaluate, so that the expected findings stand beside the bytes. Scenarios make it misbehave.
"""

from __future__ import annotations

from collections.abc import Iterable

from replispec.runtime.primitives.commands import Body
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq import broker as to_broker
from replispec.wire.rocketmq import controller as to_controller
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode, SerializeType
from replispec.wire.rocketmq.ha import (
    HaEpochEntry,
    HaHandshakeAnswer,
    HaHandshakeId,
    HaReport,
    HaTransferHeader,
)
from tests.replay.brokers import PRODUCER, Broker, text, whole_records
from tests.replay.expectations import (
    ACK_WITHIN_SENT,
    BATCH_IN_EPOCH,
    BROKER_NAME,
    BROKER_SET,
    CONFIRM_COVERS,
    CONFIRM_HOLDS,
    CONTROLLER_GROUP,
    GRANTED_ONCE,
    LEARNER,
    LOG_HOLDS,
    MASTER_MACHINE,
    OFFSET_CHAIN,
    ONLY_MASTER,
    PAIRING,
    REGISTRATION,
    REPLICA_MACHINE,
    REPLICAS_MANAGER,
    Ledger,
    Scenario,
)
from tests.replay.pcap_writer import Endpoint
from tests.replay.traffic import Link, Traffic

CLUSTER = "Cluster"
CONTROLLER: Endpoint = ("10.0.0.1", 9878)
OTHER_CONTROLLER: Endpoint = ("10.0.0.5", 9878)
NAME_SERVER: Endpoint = ("10.0.0.2", 9876)
ADMIN = "10.0.0.3"
BATCH_SIZE = 32_768
OPEN_END = 2**63 - 1


class World:
    """One broker group. Methods write frames, change what the world is, and count evaluations."""

    def __init__(
        self,
        *,
        name: str = BROKER_NAME,
        subnet: int = 1,
        traffic: Traffic | None = None,
        serialize_type: int = SerializeType.JSON,
        patient: bool = False,
    ) -> None:
        """`patient`: the master confirms what its replica has reported, and not all that it stored."""
        self.patient = patient
        self.name = name
        self.subnet = subnet
        self.traffic = traffic or Traffic()
        self.serialize_type = serialize_type
        self.brokers: dict[int, Broker] = {}
        self.master: int | None = None
        self.epoch = 0
        self.members: tuple[int, ...] = ()
        self.set_epoch = 0
        self.ledger = Ledger(f"{CONTROLLER_GROUP}/{name}")
        self.lives = 1
        self.held: dict[int, str] = {}
        self.offices: dict[int, int] = {}
        self.leader = CONTROLLER
        self.producer: Link | None = None

    def scenario(self) -> Scenario:
        """The capture so far, and everything that a replay must find in it."""
        return self.ledger.scenario(self.traffic.packets())

    def _exchange(
        self,
        link: Link,
        request: Header,
        response: Header | None,
        *,
        asked: Body | bytes | None = None,
        body: Body | bytes | None = None,
        code: int = ResponseCode.SUCCESS,
        request_code: int | None = None,
    ) -> None:
        """A request of the link's client and its answer."""
        opaque = self.traffic.request(link, request, asked, code=request_code)
        self.traffic.answer(link, opaque, response, body, code=code)
        self.ledger.count(PAIRING)

    # The controller.

    def come_up(self, number: int, *, learner: bool = False) -> Broker:
        """A broker starts for the first time: leader, id, registration, heartbeat."""
        broker = self.brokers[number] = Broker(number, self.subnet, learner)
        link = broker.to_controller = self.traffic.connect(broker.host, CONTROLLER, self.serialize_type)
        self.ask_leader(link, broker=True)
        applied = to_controller.ApplyBrokerIdRequest(
            CLUSTER, self.name, number, f"{broker.address};{self.traffic.now_ns // 10**6}"
        )
        self._exchange(link, applied, to_controller.ApplyBrokerIdResponse(CLUSTER, self.name))
        group = self.held.setdefault(number, self.ledger.group)
        self.ledger.count_in(group, GRANTED_ONCE)
        self.ledger.count(REGISTRATION, REGISTRATION, BROKER_SET)
        self.register(number)
        return broker

    def come_back(self, number: int) -> Broker:
        """A broker starts again with its identity file; its log is what it was."""
        broker = self.brokers[number]
        broker.to_controller = self.traffic.connect(broker.host, CONTROLLER, self.serialize_type)
        broker.to_name_server = broker.from_controller = broker.replication = None
        self.ask_leader(broker.to_controller, broker=True)
        self.register(number)
        return broker

    def restart_shorter(self, number: int, kept: int) -> None:
        """The master stops and starts again in its epoch; only the first `kept` bytes of its log are left."""
        self.die(number)
        del self.brokers[number].log[kept:]
        self.ledger.cut_off(self.epoch, kept)
        self.come_back(number)

    def ask_leader(self, link: Link, *, broker: bool = False) -> None:
        """1005, which names the controller group; asked by a broker or by an administrator."""
        leader = to_controller.GetMetadataResponse(CONTROLLER_GROUP, "n1", text(self.leader), True, "n1:;")
        self._exchange(link, to_controller.GetMetadataRequest(), leader)
        if broker:
            self.ledger.count(REPLICAS_MANAGER, REPLICAS_MANAGER)

    def register(self, number: int) -> None:
        """1003 and the first heartbeat."""
        broker, master = self.brokers[number], self.master
        request = to_controller.RegisterBrokerToControllerRequest(
            CLUSTER, self.name, number, broker.address, self.traffic.now_ns // 10**6
        )
        response = to_controller.RegisterBrokerToControllerResponse(CLUSTER, self.name)
        if master is not None:
            response.master_broker_id, response.master_address = master, self.brokers[master].address
            response.master_epoch, response.sync_state_set_epoch = self.epoch, self.set_epoch
        link = self.link(broker.to_controller)
        self._exchange(link, request, response, body=self._set(self.members))
        self.ledger.count(REGISTRATION, REGISTRATION, BROKER_SET, REPLICAS_MANAGER)
        self.ledger.fact(master=master is not None, members=True)
        self.heartbeat_controller(number)

    def heartbeat_controller(self, number: int, other: Link | None = None) -> None:
        """904, one-way; `other`: on a connection to another controller."""
        broker = self.brokers[number]
        beat = to_controller.BrokerHeartbeatRequest(CLUSTER, broker.address, self.name, number)
        beat.epoch, beat.max_offset, beat.confirm_offset = self.epoch, broker.end, broker.end
        self.traffic.request(other or self.link(broker.to_controller), beat, flag=RemotingFlag.ONEWAY)
        self.ledger.count(REPLICAS_MANAGER, *[LOG_HOLDS] * (number == self.master))

    def elect(self, number: int, *, notified_first: bool = False) -> None:
        """1002, asked by the broker that is elected; `notified_first`: its 1008 overtakes the answer."""
        self._make_master(number)
        request = to_controller.ElectMasterRequest(CLUSTER, self.name, None, number, False)
        response = to_controller.ElectMasterResponse(
            number, self.brokers[number].address, self.epoch, self.set_epoch
        )
        body = to_controller.ElectMasterResponseBody(
            to_controller.BrokerMemberGroup(CLUSTER, self.name, {number: self.brokers[number].address}),
            list(self.members),
        )
        link = self.link(self.brokers[number].to_controller)
        opaque = self.traffic.request(link, request)
        if notified_first:
            self.notify(number)
        self.traffic.answer(link, opaque, response, body)
        self.ledger.count(PAIRING, BROKER_SET, REPLICAS_MANAGER)
        self.ledger.fact(master=True, members=True)

    def take_over(self, number: int) -> None:
        """The controller makes this broker master by itself and notifies it: 1008.

        The broker cuts a half message off its log and starts its epoch there; what the master before
        acknowledged from there on is lost.
        """
        self._make_master(number)
        self.notify(number)

    def _make_master(self, number: int) -> None:
        broker = self.brokers[number]
        self.master, self.epoch, self.members = number, self.epoch + 1, (number,)
        self.set_epoch += 1
        self.offices[self.epoch] = number
        del broker.log[whole_records(broker.log) :]
        self.ledger.epoch_starts(self.epoch, broker.end)
        broker.epochs.append((self.epoch, broker.end))

    def notify(self, number: int) -> None:
        """1008 about the present master, one-way, on the controller's own connection to the broker."""
        broker, master = self.brokers[number], self._master()
        if broker.from_controller is None:
            broker.from_controller = self.traffic.connect(CONTROLLER[0], broker.endpoint, self.serialize_type)
        note = to_controller.NotifyBrokerRoleChangedRequest(
            master.address, master.number, self.epoch, self.set_epoch
        )
        body = self._set(self.members)
        self.traffic.request(broker.from_controller, note, body, flag=RemotingFlag.ONEWAY)
        self.ledger.count(BROKER_SET, REPLICAS_MANAGER)
        self.ledger.fact(master=True, members=True)

    def ask(
        self,
        number: int,
        *,
        master: int | None = None,
        epoch: int | None = None,
        members: Iterable[int] | None = None,
        set_epoch: int | None = None,
    ) -> None:
        """1004; what is given replaces the truth."""
        named = self._master().number if master is None else master
        response = to_controller.GetReplicaInfoResponse(
            named, self.brokers[named].address, self.epoch if epoch is None else epoch
        )
        body = self._set(self.members if members is None else members, set_epoch)
        link = self.link(self.brokers[number].to_controller)
        self._exchange(link, to_controller.GetReplicaInfoRequest(self.name), response, body=body)
        self.ledger.count(BROKER_SET, REPLICAS_MANAGER)
        self.ledger.fact(master=True, members=True)

    def query(self, *, master: int | None = None, members: Iterable[int] | None = None) -> None:
        """1006, asked by an admin on a connection of its own; what is given replaces the truth."""
        link = self.traffic.connect(ADMIN, CONTROLLER, self.serialize_type)
        self.ask_leader(link)
        named = self._master().number if master is None else master
        inside = [
            to_controller.ReplicaIdentity(None, True, self.brokers[each].address, each, self.name)
            for each in (self.members if members is None else members)
        ]
        info = to_controller.ReplicasInfo(
            inside, [], self.brokers[named].address, named, self.epoch, self.set_epoch
        )
        body = to_controller.BrokerReplicasInfo({self.name: info})
        names = to_controller.BrokerNames([self.name])
        request = to_controller.GetSyncStateDataRequest()
        self._exchange(link, request, None, asked=names, body=body)
        self.ledger.count(BROKER_SET)
        self.ledger.fact(master=True, members=True)
        self.traffic.close(link)

    def query_epochs(self, number: int) -> None:
        """1007, asked by an admin of one broker."""
        broker = self.brokers[number]
        link = self.traffic.connect(ADMIN, broker.endpoint, self.serialize_type)
        ends = [start for _, start in broker.epochs[1:]] + [OPEN_END]
        entries = [
            to_controller.EpochEntry(end, epoch, start)
            for (epoch, start), end in zip(broker.epochs, ends, strict=True)
        ]
        role = 0 if number == self.master else number
        body = to_controller.EpochEntryCache(role, self.name, CLUSTER, entries, broker.end)
        self._exchange(link, to_controller.GetBrokerEpochCacheRequest(), None, body=body)
        self.traffic.close(link)

    def alter(self, members: tuple[int, ...], *, by: int | None = None, epoch: int | None = None) -> None:
        """1001, accepted. `by` asks and names itself the master of `epoch`."""
        asking = self._master().number if by is None else by
        request = to_controller.AlterSyncStateSetRequest(
            self.name, None, asking, self.epoch if epoch is None else epoch
        )
        asked = self._set(members)
        self.members, self.set_epoch = members, self.set_epoch + 1
        response = to_controller.AlterSyncStateSetResponse(self.set_epoch)
        link = self.link(self.brokers[asking].to_controller)
        self._exchange(link, request, response, asked=asked, body=self._set(members))
        self.ledger.count(ONLY_MASTER, BROKER_SET)
        self.ledger.fact(master=False, members=True)

    def remove(self, number: int) -> None:
        """1011 for one broker: it leaves the SyncStateSet, and the set's epoch stays as it is.

        When nobody is left in the SyncStateSet, the controller forgets the broker set.
        """
        self._clean(str(number))
        self.held.pop(number)
        self.members = tuple(each for each in self.members if each != number)
        if not self.members:
            self._next_life()
        else:
            self.ledger.count(BROKER_SET)

    def start_another_life(self) -> None:
        """1011 for the whole set. The brokers stop; with the next one that comes up all begins at 1 again."""
        for number in list(self.brokers):
            self.die(number)
        self._clean(None)
        self.held.clear()
        self.brokers.clear()
        self._next_life()

    def _next_life(self) -> None:
        self.master, self.epoch, self.members, self.set_epoch = None, 0, (), 0
        self.lives += 1
        self.ledger.group = f"{CONTROLLER_GROUP}/{self.name}#{self.lives}"

    def _clean(self, numbers: str | None) -> None:
        link = self.traffic.connect(ADMIN, CONTROLLER, self.serialize_type)
        self.ask_leader(link)
        request = to_controller.CleanBrokerDataRequest(CLUSTER, self.name, None, numbers, numbers is None)
        self._exchange(link, request, None)
        self.traffic.close(link)

    def refuse(self, members: tuple[int, ...], *, by: int, epoch: int) -> None:
        """1001 of a master that was deposed, refused with the junk that error answers carry."""
        request = to_controller.AlterSyncStateSetRequest(self.name, None, by, epoch)
        link = self.link(self.brokers[by].to_controller)
        response = to_controller.AlterSyncStateSetResponse(0)
        code = ResponseCode.CONTROLLER_INVALID_MASTER
        self._exchange(link, request, response, asked=self._set(members), code=code)
        self.ledger.count(ONLY_MASTER, BROKER_SET)

    # The name server and the clients.

    def announce(self, number: int) -> None:
        """103: the broker tells its addresses, a slave learns the master's."""
        broker, master = self.brokers[number], self._master()
        if broker.to_name_server is None:
            broker.to_name_server = self.traffic.connect(broker.host, NAME_SERVER, self.serialize_type)
        request = to_broker.RegisterBrokerRequest(
            self.name,
            broker.address,
            CLUSTER,
            text(broker.replication_endpoint),
            0 if number == master.number else number,
        )
        response = to_broker.RegisterBrokerResponse()
        if number != master.number:
            response.ha_server_addr = text(master.replication_endpoint)
            response.master_addr = master.address
        self._exchange(broker.to_name_server, request, response)
        self.ledger.count(REPLICAS_MANAGER)

    def send(self, times: int) -> None:
        """310: the master stores and acknowledges messages, each in a request of its own."""
        for _ in range(times):
            self.send_to(self._master().number, epoch=self.epoch)

    def send_to(self, number: int, *, epoch: int) -> None:
        """The same, by a broker that holds itself for the master of an epoch that may have ended."""
        broker = self.brokers[number]
        offset, message = broker.store()
        response = to_broker.SendMessageResponse(broker.message_id(offset), 0, 0)
        self._exchange(self._to(broker), self._sent(), response, asked=message)
        self.ledger.acknowledge(epoch, offset, broker.end - offset)

    def _sent(self) -> to_broker.SendMessageV2Request:
        born_ms = self.traffic.now_ns // 10**6
        return to_broker.SendMessageV2Request("producers", "TopicA", born_timestamp=born_ms, queue_id=0)

    def send_batch(self, messages: int) -> None:
        """320: one request with several messages, one answer with as many ids."""
        broker = self._master()
        stored = [broker.store() for _ in range(messages)]
        request = to_broker.SendMessageV2Request("producers", "TopicA", queue_id=0, batch=True)
        where = ",".join(broker.message_id(offset) for offset, _ in stored)
        response = to_broker.SendMessageResponse(where, 0, 0)
        body = b"".join(message for _, message in stored)
        code = RequestCode.SEND_BATCH_MESSAGE
        self._exchange(self._to(broker), request, response, asked=body, request_code=code)
        for offset, _ in stored:
            self.ledger.acknowledge(self.epoch, offset)

    def send_in_vain(self) -> None:
        """310: the master stores a message, but says that its replicas did not confirm it in time."""
        broker = self._master()
        offset, message = broker.store()
        request = to_broker.SendMessageV2Request("producers", "TopicA", queue_id=0, broker_name=self.name)
        response = to_broker.SendMessageResponse(broker.message_id(offset), 0, 0)
        code = ResponseCode.FLUSH_SLAVE_TIMEOUT
        self._exchange(self._to(broker), request, response, asked=message, code=code)

    def _to(self, broker: Broker) -> Link:
        if self.producer is None or self.producer.closed or self.producer.talk.server != broker.endpoint:
            self.producer = self.traffic.connect(PRODUCER, broker.endpoint, self.serialize_type)
        return self.producer

    # Replication.

    def follow(self, number: int, *, sync_from_last_file: bool = False) -> None:
        """A replica connects to the master, truncates its log where the two part, and reports."""
        replica, master = self.brokers[number], self._master()
        replica.replication = self.traffic.connect(replica.host, master.replication_endpoint)
        if replica.learner:
            self.ledger.learners.setdefault(self.ledger.group, set()).add(number)
        self._replica_says(replica, HaHandshakeId(sync_from_last_file, replica.learner, number).encode())
        entries = [HaEpochEntry(epoch, start) for epoch, start in master.epochs]
        answer = HaHandshakeAnswer(master.end, master.epochs[-1][0], entries)
        self._master_says(replica, answer.encode())
        self.ledger.count(LOG_HOLDS)
        same = 0
        for each, other in zip(replica.epochs, master.epochs, strict=False):
            if each == other:
                same = min(replica.epoch_end(each), master.epoch_end(other))
        replica.cut(same if replica.epochs else 0)
        replica.epochs = [entry for entry in replica.epochs if entry in master.epochs]
        self.report(number)

    def report(self, number: int, offset: int | None = None) -> None:
        """The replica reports the end of its log, or what is given instead."""
        replica = self.brokers[number]
        replica.reported = replica.end if offset is None else offset
        self._replica_says(replica, HaReport(replica.reported).encode())
        self.ledger.count(ACK_WITHIN_SENT)

    def replicate(self, number: int) -> None:
        """All that the replica lacks, in batches that end at the borders of epochs, each with a report."""
        replica, master = self.brokers[number], self._master()
        borders = [start for _, start in master.epochs[1:]]
        while (at := replica.end) < master.end:
            limit = min([border for border in borders if border > at] + [master.end, at + BATCH_SIZE])
            self.batch(number, at, limit - at)
            self.report(number)

    def batch(
        self, number: int, offset: int, size: int, *, epoch: int | None = None, start: int | None = None
    ) -> None:
        """One transfer of master's log bytes, labelled with the epoch of its first byte or as given."""
        replica, master = self.brokers[number], self._master()
        own = [entry for entry in master.epochs if entry[1] <= offset][-1]
        label, begins = own[0] if epoch is None else epoch, own[1] if start is None else start
        body = master.part(offset, size)
        header = HaTransferHeader(offset, label, begins, self._confirmed(replica), body)
        self._master_says(replica, header.encode())
        self.ledger.count(OFFSET_CHAIN, BATCH_IN_EPOCH, CONFIRM_HOLDS)
        self._tell_confirmed(label, replica)
        if label == self.epoch and self.ledger.all_ack:
            self.ledger.count(CONFIRM_COVERS)
        link = self.link(replica.replication)
        self.ledger.carry(label, offset, size, self.traffic.links.index(link))
        replica.log += body
        known = [entry for entry in master.epochs if entry[1] <= offset]
        replica.epochs += [entry for entry in known if entry not in replica.epochs]

    def heartbeat(self, number: int) -> None:
        """A transfer header without a body."""
        replica, master = self.brokers[number], self._master()
        epoch, start = master.epochs[-1]
        offset = replica.end if master.end else -1
        self._master_says(replica, HaTransferHeader(offset, epoch, start, self._confirmed(replica)).encode())
        self.ledger.count(CONFIRM_HOLDS)
        if offset >= 0:
            self._tell_confirmed(epoch, replica)
        if offset >= 0 and self.ledger.all_ack:
            self.ledger.count(CONFIRM_COVERS)

    def _tell_confirmed(self, epoch: int, replica: Broker) -> None:
        if self.offices[epoch] == self.master:
            self.ledger.confirm(epoch, self._confirmed(replica))

    def _confirmed(self, replica: Broker) -> int:
        return replica.reported if self.patient else self._master().end

    def die(self, number: int) -> None:
        """The broker's process ends: its connections are closed."""
        host = self.brokers[number].host
        for link in self.traffic.links:
            if host in (link.talk.client[0], link.talk.server[0]) and not link.closed:
                self.traffic.close(link)

    def _replica_says(self, replica: Broker, data: bytes) -> None:
        self.ledger.count(REPLICA_MACHINE, MASTER_MACHINE, *[LEARNER] * replica.learner)
        self.traffic.send(self.link(replica.replication), data, from_client=True)

    def _master_says(self, replica: Broker, data: bytes) -> None:
        self.ledger.count(REPLICA_MACHINE, MASTER_MACHINE)
        self.traffic.send(self.link(replica.replication), data, from_client=False)

    @staticmethod
    def link(link: Link | None) -> Link:
        """The connection, which the scenario must have made."""
        assert link is not None, "the scenario has not connected this yet"
        return link

    def _set(self, members: Iterable[int], set_epoch: int | None = None) -> to_controller.SyncStateSet:
        number = self.set_epoch if set_epoch is None else set_epoch
        return to_controller.SyncStateSet(broker_ids=sorted(members), sync_state_set_epoch=number)

    def _master(self) -> Broker:
        assert self.master is not None, "the scenario has not elected a master yet"
        return self.brokers[self.master]
