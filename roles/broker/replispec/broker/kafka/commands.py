"""What the controller commands, carried out one command after the other.

A command that changes something is answered when that is on the disk, the new high watermarks with it: who
follows cuts by them. Source: apache/kafka 2.8.2, ReplicaManager.becomeLeaderOrFollower, stopReplicas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from replispec.broker.kafka.core.places import ToldPlace, ToldPlaces
from replispec.broker.kafka.core.replica import LocalReplica, ReplicaKey
from replispec.broker.kafka.keeping import LogKeeper
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.runtime.kafka import rules
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.primitives.machines import step
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.apache import (
    ApacheLeaderAndIsr,
    ApacheLeaderAndIsrRequest,
    ApachePartitionError,
    ApacheStopReplicaRequest,
    ApacheUpdateMetadataRequest,
)
from replispec.wire.kafka.constants import NO_OFFSET
from replispec.wire.kafka.design import DesignLeaderAndIsr, DesignPartition
from replispec.wire.kafka.machines import broker_command as machine
from replispec.wire.kafka.machines import broker_command_wire as wire
from replispec.wire.kafka.machines import replica as replica_machine

Command = ApacheLeaderAndIsrRequest | ApacheStopReplicaRequest | ApacheUpdateMetadataRequest
Say = Callable[[bytes], None]
"""Is given the answer to a command."""


class ReplicaFetching(Protocol):
    """Whoever fetches what other brokers lead."""

    def follow(self, replica: LocalReplica, leader: ToldPlace | None) -> None:
        """Follow the leader that the replica knows, which listens there, None where nobody said."""

    def stop(self, key: ReplicaKey) -> None:
        """Follow nobody any more."""


@immutable
class _Waiting:
    message: Command
    version: int
    say: Say
    kept: frozenset[ReplicaKey] | None = None


@immutable
class _LeftOut:
    """A log that the store assigns to others. `epoch`: that of the replica when the store was asked."""

    key: ReplicaKey
    epoch: int


class ControllerCommands:
    """Carries commands out. `own_epoch` tells the epoch of the registration, `now_ms` the time; `made` is
    told the topic of each log that is made."""

    def __init__(
        self,
        outbox: Outbox,
        replicas: LocalReplicas,
        places: ToldPlaces,
        keeper: LogKeeper,
        fetching: ReplicaFetching,
        *,
        own_epoch: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._replicas = replicas
        self._places = places
        self._keeper = keeper
        self._fetching = fetching
        self._own_epoch = own_epoch
        self._now_ms = now_ms
        self._variables = machine.MACHINE.variables
        self._waiting: deque[_Waiting | _LeftOut] = deque()
        self._is_busy = False
        self._deleted = 0
        self.made: Callable[[str], None] = lambda _: None

    @property
    def controller_epoch(self) -> int:
        """That of the newest controller it heard of."""
        return self._variables.controller_epoch

    def take(
        self, message: Command, version: int, say: Say, *, kept: frozenset[ReplicaKey] | None = None
    ) -> None:
        """Carry a command out at its turn. One that says who leads may say, too, that nothing but these
        replicas is `kept`."""
        self._waiting.append(_Waiting(message, version, say, kept))
        self.go_on()

    def leave_out(self, key: ReplicaKey, epoch: int) -> None:
        """The store assigns a log to others: give it up at its turn, unless the replica, which was of this
        epoch when the store was asked, was commanded since."""
        self._waiting.append(_LeftOut(key, epoch))
        self.go_on()

    def controller_seen(self, epoch: int) -> None:
        """The store says which controller is the newest."""
        self._step(machine.ControllerSeen(epoch))

    def go_on(self) -> None:
        """Carry out what waits, unless the disk is waited for."""
        while self._waiting and not self._is_busy and self._keeper.folder.is_taken:
            one = self._waiting.popleft()
            if isinstance(one, _LeftOut):
                self._leave_out(one)
                continue
            message = one.message
            effect = self._step(
                machine.Commanded(
                    controller_epoch=message.controller_epoch,
                    broker_epoch=NO_OFFSET if message.broker_epoch is None else message.broker_epoch,
                    own_epoch=self._own_epoch(),
                )
            )
            error = machine.ANSWERS[effect]
            if effect != "carry_out":
                self._outbox.note(Level.WARNING, "command refused", reason=effect)
            self._carry_out(one, message, error, is_refused=effect != "carry_out")

    def _step(self, event: machine.Event) -> str:
        taken = step(machine.MACHINE, machine.State.SERVING, self._variables, event, rules)
        self._variables = taken.variables
        return taken.effects[0] if taken.effects else ""

    def _carry_out(self, one: _Waiting, message: Command, error: int, *, is_refused: bool) -> None:
        match message:
            case ApacheUpdateMetadataRequest():
                if not is_refused:
                    self._places.told(message)
                said = wire.answer_metadata(machine.MetadataTold(error)).header
                one.say(said.encode(version=one.version))
            case ApacheLeaderAndIsrRequest():
                errors = [] if is_refused else self._lead_all(message)
                if one.kept is not None and not is_refused:
                    self._keep_only(one.kept)
                said_leaders = wire.answer_leaders(machine.LeadersTold(error, errors)).header
                self._when_written(one, said_leaders.encode(version=one.version), is_refused=is_refused)
            case ApacheStopReplicaRequest():
                errors = [] if is_refused else self._stop_all(message)
                said_replicas = wire.answer_replicas(machine.ReplicasTold(error, errors)).header
                self._when_written(one, said_replicas.encode(version=one.version), is_refused=is_refused)

    def _when_written(self, one: _Waiting, said: bytes, *, is_refused: bool) -> None:
        if is_refused:
            one.say(said)
        else:
            self._wait_for_disk(lambda: one.say(said))

    def _wait_for_disk(self, then: Callable[[], None]) -> None:
        self._is_busy = True

        def written() -> None:
            self._is_busy = False
            then()
            self.go_on()

        self._keeper.folder.checkpoint()
        self._keeper.when_written(written)

    # LeaderAndIsr

    def _lead_all(self, message: ApacheLeaderAndIsrRequest) -> list[ApachePartitionError]:
        leaders = {
            each.broker_id: ToldPlace(each.host_name, each.port, None) for each in message.live_leaders
        }
        return [
            ApachePartitionError(topic, each.partition_index, self._lead(topic, each, leaders))
            for topic, each in _named(message)
        ]

    def _lead(self, topic: str, said: ApacheLeaderAndIsr, leaders: Mapping[int, ToldPlace]) -> int:
        assigned = self._replicas.broker_id in said.replicas
        effect = self._step(machine.ReplicaNamed(assigned))
        if effect != "take_replica":
            return machine.ANSWERS[effect]
        replica = self._replicas.get((topic, said.partition_index))
        # The log was grown by whoever fetches: the machine hears of it before it decides.
        _grown(replica)
        event = replica_machine.LeaderAndIsr(
            DesignLeaderAndIsr(
                topic=topic,
                partition_id=said.partition_index,
                leader=said.leader,
                leader_epoch=said.leader_epoch,
                isr=said.isr,
                zk_version=said.zk_version,
            )
        )
        before = replica.known.leader_epoch
        effects = replica.take(event)
        if said.leader_epoch > before:
            replica.assigned, replica.decided_by = tuple(said.replicas), said.controller_epoch
        return self._do(replica, effects, leaders)

    def _do(self, replica: LocalReplica, effects: Iterable[str], leaders: Mapping[int, ToldPlace]) -> int:
        """Do what the machine wants; returns the error of the answer that it wants."""
        error = 0
        self._replicas.touched.add(replica.key)
        for effect in effects:
            match effect:
                case "open_log":
                    replica.log = log = self._keeper.folder.make(*replica.key, self._now_ms())
                    self.made(replica.key[0])
                    started = replica_machine.Started(log.high_watermark, log.end)
                    error = self._do(replica, replica.take(started), leaders)
                case "start_commits":
                    replica.lead(self._now_ms())
                    self._outbox.note(
                        Level.INFO, "leads", partition=replica.key, epoch=replica.known.leader_epoch
                    )
                case "start_fetching":
                    leader = replica.known.leader
                    place = leaders.get(leader) or self._places.brokers.get(leader)
                    self._fetching.follow(replica, place)
                case "stop_fetching":
                    self._fetching.stop(replica.key)
                case "delete_directory":
                    self._deleted += 1
                    self._keeper.folder.delete(*replica.key, f"{self._now_ms():x}{self._deleted:x}")
                    replica.log = None
                case "stop_commits" | "take_isr" | "truncate_log" | "start_checkpoints" | "stop_checkpoints":
                    # What follows of the replica's state; who follows cuts, the folder has all checkpoints.
                    pass
                case _ if effect in replica_machine.ANSWERS:
                    error = replica_machine.ANSWERS[effect]
                case _:
                    raise LocalProtocolError(f"nobody does {effect}")
        return error

    def _keep_only(self, kept: frozenset[ReplicaKey]) -> None:
        """Delete all replicas but these, those of before this process began, too."""
        for key in sorted({*self._replicas.by_key, *self._keeper.folder.logs} - kept):
            self._outbox.note(Level.INFO, "log is left out", partition=key)
            self._give_up(key, replica_machine.LeftOut())

    # StopReplica

    def _stop_all(self, message: ApacheStopReplicaRequest) -> list[ApachePartitionError]:
        errors = []
        for key in _stopped(message):
            stop = replica_machine.StopReplica(DesignPartition(*key))
            error = self._give_up(key, stop) if message.delete_partitions else machine.ANSWERS["take_replica"]
            errors.append(ApachePartitionError(*key, error))
        return errors

    def _leave_out(self, one: _LeftOut) -> None:
        if one.key in self._keeper.folder.logs and self._replicas.epoch_of(one.key) == one.epoch:
            self._outbox.record(Level.WARNING, "log is assigned to others", partition=one.key)
            self._give_up(one.key, replica_machine.LeftOut())
            self._wait_for_disk(lambda: None)

    def _give_up(self, key: ReplicaKey, event: replica_machine.StopReplica | replica_machine.LeftOut) -> int:
        replica = self._replicas.get(key)
        if replica.log is None and key in self._keeper.folder.logs:
            # From before this process began.
            self._deleted += 1
            self._keeper.folder.delete(*key, f"{self._now_ms():x}{self._deleted:x}")
        error = self._do(replica, replica.take(event), {})
        if replica.state is replica_machine.State.STOPPING:
            error = self._do(replica, replica.take(replica_machine.DirectoryDeleted()), {})
        del self._replicas.by_key[key]
        return error


def _grown(replica: LocalReplica) -> None:
    """Tell the machine of a follower how far its log is now."""
    log = replica.log
    if log is not None and replica.state is replica_machine.State.FOLLOWER:
        at = replica.known.log_end
        replica.take(replica_machine.Fetched(at, log.end - at, log.high_watermark))


def _named(message: ApacheLeaderAndIsrRequest) -> Iterable[tuple[str, ApacheLeaderAndIsr]]:
    for each in message.partitions or ():
        yield each.topic_name or "", each
    for topic in message.topics or ():
        for each in topic.partitions:
            yield topic.topic_name, each


def _stopped(message: ApacheStopReplicaRequest) -> Iterable[ReplicaKey]:
    for each in message.partitions or ():
        yield each.topic_name, each.partition_index
    for topic in message.topics or ():
        for index in topic.partition_indexes:
            yield topic.name, index
