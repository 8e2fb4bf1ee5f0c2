"""Random events for any generated machine, made from the types that its event classes declare."""

from __future__ import annotations

import functools
import random
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import ModuleType, SimpleNamespace
from typing import Any

from replispec.runtime.kafka import rules as kafka_rules
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.raft import rules as raft_rules
from replispec.runtime.rocketmq import rules
from replispec.runtime.zookeeper import rules as zookeeper_rules
from replispec.wire.kafka.machines import (
    broker_command,
    client_answer,
    cluster_controller,
    fetcher,
    followed_replica,
    partition,
    partition_asked,
    reassignment,
    replica,
    topic_deletion,
)
from replispec.wire.raft.machines import member
from replispec.wire.raft.member import RaftEntry
from replispec.wire.rocketmq.broker import (
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import (
    ConsumerData,
    CreateTopicRequest,
    DelayOffsetTable,
    KeptObject,
    MessageRequestModes,
    QueueOffsets,
    ResetOffsetBody,
    SubscriptionGroup,
    SubscriptionGroupTable,
    TopicStatsTable,
)
from replispec.wire.rocketmq.controller import BrokerHeartbeatRequest, GroupMemberInfo, Property
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.logical_queue import LogicalQueueSegment
from replispec.wire.rocketmq.machines import (
    announcement,
    beside_log,
    broker_administration,
    broker_groups,
    broker_pulls,
    broker_registration,
    broker_role,
    broker_sends,
    broker_set,
    broker_statistics,
    client_questions,
    controller,
    delayed_messages,
    digest_check,
    election_hearing,
    group_members,
    group_question,
    ha_master,
    ha_replica,
    learner,
    log_digests,
    log_questions,
    logical_queue_migration,
    logical_queue_segment,
    logical_queue_topic,
    name_server,
    replicas_manager,
    request,
    static_topic_queue,
    static_topic_remapping,
)
from replispec.wire.rocketmq.message_queue import MessageQueue
from replispec.wire.rocketmq.static_topic import LogicQueueMappingItem
from replispec.wire.zookeeper.machines import metastore_operation, metastore_request, metastore_session
from replispec.wire.zookeeper.operations import MultiResult, Stat

KAFKA = (
    broker_command,
    client_answer,
    cluster_controller,
    fetcher,
    followed_replica,
    partition,
    partition_asked,
    reassignment,
    replica,
    topic_deletion,
)
ROCKETMQ = (
    announcement,
    beside_log,
    broker_administration,
    broker_groups,
    broker_pulls,
    broker_registration,
    broker_role,
    broker_sends,
    broker_set,
    broker_statistics,
    client_questions,
    controller,
    delayed_messages,
    digest_check,
    election_hearing,
    group_members,
    group_question,
    ha_master,
    ha_replica,
    learner,
    log_digests,
    log_questions,
    logical_queue_migration,
    logical_queue_segment,
    logical_queue_topic,
    name_server,
    replicas_manager,
    request,
    static_topic_queue,
    static_topic_remapping,
)
RAFT = (member,)
ZOOKEEPER = (metastore_operation, metastore_request, metastore_session)
MODULES = (*ROCKETMQ, *KAFKA, *RAFT, *ZOOKEEPER)
MACHINES: dict[str, Machine[Any, Any]] = {module.MACHINE.name: module.MACHINE for module in MODULES}

Chooser = Callable[[random.Random], Any]


def _epochs(rng: random.Random) -> tuple[HaEpochEntry, ...]:
    starts = sorted(rng.sample(range(4), rng.randint(0, 2)))
    return tuple(HaEpochEntry(epoch=number, start_offset=start) for number, start in enumerate(starts, 1))


def _heartbeats(rng: random.Random) -> tuple[BrokerHeartbeatRequest, ...]:
    brokers = rng.sample(range(1, 4), rng.randint(0, 3))
    return tuple(
        BrokerHeartbeatRequest(broker_id=broker, epoch=rng.randint(0, 1), max_offset=rng.randint(0, 2))
        for broker in brokers
    )


def _items(rng: random.Random) -> tuple[LogicQueueMappingItem, ...]:
    count = rng.randint(0, 2)
    return tuple(
        LogicQueueMappingItem(bname=rng.choice(["a", "b"]), gen=number, logic_offset=rng.randint(-1, 0))
        for number in range(count)
    )


CHOICES: dict[Any, Chooser] = {
    int: lambda rng: rng.randint(-1, 3),
    bool: lambda rng: rng.random() < 0.5,
    str: lambda rng: rng.choice(["", "a", "b"]),
    bytes: lambda rng: rng.choice([b"", b"a"]),
    BrokerHeartbeatRequest: lambda rng: BrokerHeartbeatRequest(broker_id=rng.randint(1, 3)),
    RegisterBrokerRequest: lambda rng: RegisterBrokerRequest(broker_id=rng.randint(0, 3)),
    TopicConfigTable: lambda _rng: TopicConfigTable(),
    CreateTopicRequest: lambda _rng: CreateTopicRequest(),
    Mapping[str, TopicConfig]: lambda _rng: {},
    SubscriptionGroup: lambda _rng: SubscriptionGroup(),
    SubscriptionGroupTable: lambda _rng: SubscriptionGroupTable(),
    ResetOffsetBody: lambda _rng: ResetOffsetBody(),
    DelayOffsetTable: lambda _rng: DelayOffsetTable(),
    MessageRequestModes: lambda _rng: MessageRequestModes(),
    Mapping[str, QueueOffsets]: lambda _rng: {},
    Mapping[str, SubscriptionGroup]: lambda rng: rng.choice([{}, {"a": SubscriptionGroup()}]),
    Mapping[str, KeptObject]: lambda rng: rng.choice([{}, {"a": KeptObject()}]),
    Mapping[int, int]: lambda rng: rng.choice([{}, {1: 2}]),
    Sequence[Property]: lambda _rng: (),
    Sequence[GroupMemberInfo]: lambda _rng: (),
    Sequence[ConsumerData]: lambda _rng: (),
    Sequence[MessageQueue]: lambda _rng: (),
    Sequence[str]: lambda rng: tuple(rng.sample(["", "a", "b"], rng.randint(0, 3))),
    Sequence[int]: lambda rng: tuple(rng.sample(range(1, 4), rng.randint(0, 3))),
    frozenset[int]: lambda rng: frozenset(rng.sample(range(1, 4), rng.randint(0, 3))),
    Sequence[HaEpochEntry]: _epochs,
    Sequence[LogicQueueMappingItem]: _items,
    LogicalQueueSegment: lambda rng: LogicalQueueSegment(
        logical_queue_index=rng.randint(0, 1),
        logical_queue_delta=rng.randint(-1, 2),
        state=rng.choice(("WriteOnly", "Normal")),
    ),
    TopicStatsTable: lambda _rng: TopicStatsTable(),
    Stat: lambda rng: Stat(version=rng.randint(0, 2)),
    Sequence[MultiResult]: lambda _rng: (),
    Sequence[RaftEntry]: lambda rng: tuple(
        RaftEntry(term=rng.randint(1, 3)) for _ in range(rng.randint(0, 3))
    ),
    Sequence[BrokerHeartbeatRequest]: _heartbeats,
}


def _choose(kind: Any, rng: random.Random) -> Any:
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kinds = [each for each in typing.get_args(kind) if each is not type(None)]
        return None if rng.random() < 0.3 else _choose(kinds[0], rng)
    if kind not in CHOICES and typing.get_origin(kind) is Sequence:
        # A list of messages, of which a machine decides nothing by what is in it.
        return ()
    return CHOICES[kind](rng)


@functools.cache
def attributes(kind: type) -> dict[str, Any]:
    """What guards may read of an event: its fields, or the properties that forward to its message."""
    if "message" in {each.name for each in fields(kind)}:
        properties = {name: each for name, each in vars(kind).items() if isinstance(each, property)}
        return {name: typing.get_type_hints(each.fget)["return"] for name, each in properties.items()}
    return typing.get_type_hints(kind)


def module_of(machine: Machine[Any, Any]) -> ModuleType:
    """The generated module that holds a machine."""
    return next(module for module in MODULES if module.MACHINE.name == machine.name)


def rules_of(machine: Machine[Any, Any]) -> ModuleType:
    """The algorithms that the guards of a machine call: those of its family."""
    module = module_of(machine)
    of_others = ((KAFKA, kafka_rules), (RAFT, raft_rules), (ZOOKEEPER, zookeeper_rules))
    return next((own for modules, own in of_others if module in modules), rules)


def random_event(machine: Machine[Any, Any], rng: random.Random) -> tuple[type, SimpleNamespace]:
    """A class of events and a light row that fits its `where`."""
    kind = rng.choice(list(machine.events))
    return kind, random_row(machine, kind, rng)


def random_row(
    machine: Machine[Any, Any], kind: type, rng: random.Random, variables: Any = None
) -> SimpleNamespace:
    """A light row of one class of events; fields named like variables often agree with them."""
    hints = attributes(kind)
    where = machine.events[kind].where
    while True:
        row = SimpleNamespace(**{name: _choose(each, rng) for name, each in hints.items()})
        for name in hints:
            if hasattr(variables, name) and rng.random() < 0.6:
                setattr(row, name, getattr(variables, name))
        if where is None or where(machine.variables, row, None):
            return row
