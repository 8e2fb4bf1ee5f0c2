"""Rules of controller and broker of partitions, broken one at a time: which seeds find each.

python -m tests.sim_kafka.mutants [SEEDS] [WORD ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from replispec.broker.kafka.core.following import KnownFollower
from replispec.broker.kafka.core.replica import LocalReplica
from replispec.broker.kafka.follower import PartitionsFollower
from replispec.broker.kafka.follower.partition import FollowedPartition
from replispec.broker.kafka.isr import IsrKeeper
from replispec.broker.kafka.produces import Produces
from replispec.broker.kafka.strays import StrayLogs
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.core.partition import LedPartition
from replispec.controller.kafka.deletions import TopicDeletions
from replispec.controller.kafka.moves import PartitionMoves
from replispec.learner.kafka.core.export import RecordExport
from replispec.runtime.kafka import rules
from replispec.runtime.kafka.log import LogFolder, PartitionLog
from replispec.runtime.sim import SimulatedFiles, SimulatedJournal
from replispec.runtime.zookeeper.client import BatchItem, MetastoreClient
from replispec.runtime.zookeeper.client.watching import WatchedNodes
from replispec.wire.kafka import paths
from replispec.wire.kafka.machines import followed_replica, partition
from replispec.wire.kafka.machines import replica as replica_machine
from replispec.wire.zookeeper.constants import ANY_VERSION
from replispec.wire.zookeeper.operations import DeleteRequest
from tests.sim_kafka.run import PartitionsRun
from tests.sim_kafka.settings import PartitionsSettings, drawn_settings

Mutant = Callable[[], AbstractContextManager[object]]


def _rule(name: str, broken: Callable[..., object]) -> Mutant:
    return lambda: patch.object(rules, name, broken)


def _method(kind: type, name: str, broken: object) -> Mutant:
    return lambda: patch.object(kind, name, broken)


def _around(kind: type, name: str, broken: Callable[..., object]) -> Mutant:
    """`broken` is handed the method and its arguments."""
    real = getattr(kind, name)
    return _method(kind, name, lambda *args, **kwargs: broken(real, *args, **kwargs))


@contextmanager
def _lying(storage: type[SimulatedFiles | SimulatedJournal], call: str) -> Iterator[None]:
    """What is written by this call is there until the power is lost."""
    write = getattr(storage, call)

    def lie(self: SimulatedFiles | SimulatedJournal, *args: object, **kwargs: object) -> None:
        disk = vars(self)["_disk"]
        disk.keeps_flushes = False
        try:
            write(self, *args, **kwargs)
        finally:
            disk.keeps_flushes = True

    with patch.object(storage, call, lie):
        yield


# The store


def _isr_without_version(
    real: Any, self: MetastoreClient, path: str, data: bytes, version: int, then: Any
) -> None:
    real(self, path, data, ANY_VERSION if path.endswith("/state") else version, then)


# The controller


def _same_epoch(real: Any, self: LedPartition, event: partition.Event) -> Any:
    before, effects = self.variables, real(self, event)
    if isinstance(event, partition.BrokersChanged) and before.leader is not None:
        self.variables = replace(self.variables, leader_epoch=before.leader_epoch)
    return effects


def _wish_first(real: Any, self: TopicDeletions, names: Any) -> None:
    names = tuple(names)
    real(self, names)
    wishes = [DeleteRequest(paths.APACHE_TOPIC_DELETED.at(topic=each), ANY_VERSION) for each in names]
    vars(self)["_store"].change_all([BatchItem((each,), lambda _: None) for each in wishes])


def _told_nothing(real: Any, self: BrokerCommands, broker_id: int) -> None:
    real(self, broker_id)
    vars(self)["_waiting"][broker_id].rounds[0].led.clear()


def _first_assigned(assigned: Sequence[int], leader: int | None, isr: frozenset[int]) -> int | None:
    return leader if leader in isr else next(iter(assigned), None) if isr else None


# The broker


def _committed(real: Any, self: Produces, *args: Any) -> Any:
    event = real(self, *args)
    return replace(event, committed=event.flushed)


def _leader_alone(self: LocalReplica) -> None:
    log = self.log
    assert log is not None
    self.take(replica_machine.AllFetched(log.flushed))
    log.high_watermark = max(log.high_watermark, min(self.known.high_watermark, log.end))


def _falling(real: Any, self: LocalReplica) -> None:
    real(self)
    log = self.log
    assert log is not None
    ends = [each.log_end for number, each in self.followers.items() if number in self.isr]
    log.high_watermark = max(log.start, min([log.flushed, *ends]))


def _joins_early(real: Any, self: KnownFollower, event: Any) -> Any:
    effects = real(self, event)
    return ("want_in",) if isinstance(event, followed_replica.JoiningConsidered) else effects


def _cut_to_mark(real: Any, self: FollowedPartition, *args: Any, **kwargs: Any) -> None:
    real(self, *args, **{**kwargs, "by_epoch": False})


def _epochs_stay(real: Any, self: PartitionLog, offset: int) -> None:
    if offset < self.end:
        real(self, offset)


def _uncommitted(real: Any, self: PartitionLog, offset: int, most: int, _upper: int, **kwargs: Any) -> bytes:
    return bytes(real(self, offset, most, self.end, **kwargs))


def _kept_folder(self: LogFolder, topic: str, number: int, _unique: str) -> None:
    del self.logs[topic, number]


def _twice(real: Any, self: PartitionLog, *args: Any) -> Any:
    real(self, *args)
    return real(self, *args)


def _told_twice(real: Any, self: RecordExport, *args: Any) -> None:
    real(self, *args)
    real(self, *args)


def _without_leader(real: Any, self: IsrKeeper, one: LocalReplica, members: frozenset[int]) -> None:
    real(self, one, members - {one.known.leader})


def _request_stays(real: Any, self: PartitionMoves, move: Any) -> None:
    requests = vars(self)["_requests"]
    kept = dict(requests)
    requests.pop(move.one.key, None)
    real(self, move)
    requests.update(kept)


def _nothing(*_: object, **__: object) -> None:
    pass


def _unclean(real: Any, self: PartitionsSettings) -> dict[str, Any]:
    return {**real(self), "unclean_leader_election_enable": True}


MUTANTS: Final[dict[str, Mutant]] = {
    "a batch is appended twice": _around(PartitionLog, "append_as_leader", _twice),
    "a learner tells a record twice": _around(RecordExport, "put", _told_twice),
    "a leader leaves its own ISR": _around(IsrKeeper, "want", _without_leader),
    "a move ends and its request stays": _around(PartitionMoves, "_finish", _request_stays),
    "everybody is told who leads, but not where": _method(BrokerCommands, "show", _nothing),
    "an ISR is written whatever the version": _around(MetastoreClient, "set_data", _isr_without_version),
    "what is watched is read once": _method(WatchedNodes, "told", _nothing),
    "the store forgets what it told": lambda: _lying(SimulatedJournal, "append"),
    "a new leader has the epoch of the last one": _around(LedPartition, "take", _same_epoch),
    "the first assigned broker leads, in sync or not": _rule("leader_of", _first_assigned),
    "an unclean election is made where it is not allowed": _around(
        PartitionsSettings, "controller", _unclean
    ),
    "the wish to delete a topic goes before the topic": _around(TopicDeletions, "wanted", _wish_first),
    "a broker that comes is not told what it has": _around(BrokerCommands, "begin", _told_nothing),
    "old replicas are not stopped": _method(BrokerCommands, "stop", _nothing),
    "logs of others stay": _method(StrayLogs, "watch", _nothing),
    "a leader acknowledges what it has alone": _around(Produces, "_event_of", _committed),
    "the high watermark is the leader's end": _method(LocalReplica, "commit", _leader_alone),
    "the high watermark falls": _around(LocalReplica, "commit", _falling),
    "a follower joins before it has what is committed": _around(KnownFollower, "take", _joins_early),
    "nothing is cut after a fail-over": _rule("cut_by_epoch", lambda _, end, *__: end),
    "a log is cut to its high watermark": _around(FollowedPartition, "follow", _cut_to_mark),
    "an epoch without records stays": _around(PartitionLog, "truncate", _epochs_stay),
    "consumers see what is not committed": _around(PartitionLog, "read", _uncommitted),
    "the logs of a broker are not brought to the disk": lambda: _lying(SimulatedFiles, "flush"),
    "the folder of a deleted replica stays": _method(LogFolder, "delete", _kept_folder),
    "a follower follows on after it leads": _method(PartitionsFollower, "stop", _nothing),
}


LATE: Final = {"an epoch without records stays": 63}
"""What few seeds find, and from where on to look for it."""


def found_by(mutant: Mutant, seeds: int, first: int = 0) -> tuple[int, str] | None:
    """The first seed that finds a mutant, and what it says; None when none of so many does. Where followers
    cut to the high watermark is passed over: there losses are excused."""
    with mutant():
        for seed in range(first, first + seeds):
            if not drawn_settings(seed).cuts_by_epoch:
                continue
            try:
                wrong = PartitionsRun(seed).play(is_hasty=True).wrong
            except Exception as error:  # noqa: BLE001 - a node that ends so is found, whatever it says.
                wrong = [repr(error)]
            if wrong:
                return seed, wrong[0]
    return None


def main() -> None:
    """The command line."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name, mutant in MUTANTS.items():
        if all(word in name for word in sys.argv[2:]):
            sys.stdout.write(f"{name}: {found_by(mutant, seeds)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
