"""Name servers that do it wrong with mappings: each overrides one choice of the good one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.logical_queue import (
    LogicalQueueSegment,
    LogicalQueueSegments,
    LogicalQueuesEnabled,
)
from replispec.wire.rocketmq.static_topic import DeleteTopicRouteRequest, TopicQueueMappingInfo
from tests.conformance.subjects.mapped import Held, Mapped, Segments, start_of, unsealed
from tests.conformance.subjects.name_server import Broker, GoodNameServer


def with_mapped(made: type[Mapped]) -> type[GoodNameServer]:
    """A name server that is right but for what it does with mappings."""
    return type(made.__name__, (GoodNameServer,), {"mapped": made})


# ---- static topics ---------------------------------------------------------------------------------


class KeepsTheFirstMapping(Mapped):
    """What a broker says first counts for ever."""

    def is_taken(self, said: TopicQueueMappingInfo, known: TopicQueueMappingInfo | None, name: str) -> bool:
        return known is None and super().is_taken(said, known, name)


class JoinsWhatIsLed(Mapped):
    """What a broker ever led it is told to lead."""

    def take_static(self, held: Held, said: TopicQueueMappingInfo, name: str, topic: str) -> None:
        before = (held.static.curr_id_map if held.static is not None else None) or {}
        super().take_static(held, said, name, topic)
        if held.static is not None:
            held.static.curr_id_map = {**before, **(held.static.curr_id_map or {})}


class TakesAnyEpoch(Mapped):
    """The mapping that comes last counts."""

    def is_taken(self, said: TopicQueueMappingInfo, known: TopicQueueMappingInfo | None, name: str) -> bool:  # noqa: ARG002
        return super().is_taken(said, None, name)


class KnowsNoClock(Mapped):
    """Every number is an epoch."""

    def is_of_a_clock(self, said: TopicQueueMappingInfo) -> bool:  # noqa: ARG002
        return True


class TakesItOfAnybody(Mapped):
    """A mapping is of the broker that it names."""

    def take_static(self, held: Held, said: TopicQueueMappingInfo, name: str, topic: str) -> None:  # noqa: ARG002
        about = self.held[topic].setdefault(said.bname or "", Held(held.cluster))
        super().take_static(about, said, said.bname or "", topic)


class TellsOneMapping(Mapped):
    """Of several brokers one mapping is told."""

    def static(self, topic: str) -> Mapping[str, TopicQueueMappingInfo] | None:
        found = super().static(topic)
        return found and dict(list(found.items())[:1])


class HidesWhoLeadsNothing(Mapped):
    """A mapping without leaders is not told."""

    def static(self, topic: str) -> Mapping[str, TopicQueueMappingInfo] | None:
        found = super().static(topic) or {}
        return {name: each for name, each in found.items() if each.curr_id_map} or None


class ForgetsWhoLeft(Mapped):
    """With a broker its mappings go."""

    def left(self, broker: str) -> None:
        for held in self.held.values():
            held.pop(broker, None)


class KeepsMappings(Mapped):
    """A topic is deleted, its mapping is not."""

    def deleted(self, topic: str, cluster: str | None) -> None:
        pass


class OneVersionOneMapping(GoodNameServer):
    """Under an equal version no mapping is looked at."""

    def keep(self, broker: Broker) -> None:
        known = self.brokers_before.get(broker.said.broker_addr or "")
        self.is_known = known == broker.version
        self.brokers_before[broker.said.broker_addr or ""] = broker.version
        super().keep(broker)

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.brokers_before: dict[str, DataVersion] = {}
        self.is_known = False

    def speaks_for_its_set(self, said: RegisterBrokerRequest) -> bool:
        return not self.is_known and super().speaks_for_its_set(said)


class ListensToReplicas(GoodNameServer):
    """Mappings of replicas count."""

    def speaks_for_its_set(self, said: RegisterBrokerRequest) -> bool:  # noqa: ARG002
        return True


# ---- deletion --------------------------------------------------------------------------------------


class DeletesNothing(GoodNameServer):
    """A topic that is deleted is still there."""

    def forgotten(self, _topic: str, cluster: str | None) -> Iterable[Broker]:  # noqa: ARG002
        return []


class DeletesEverywhere(GoodNameServer):
    """A topic is deleted in all clusters."""

    def forgotten(self, _topic: str, cluster: str | None) -> Iterable[Broker]:  # noqa: ARG002
        return super().forgotten(_topic, None)


class NamesNoCluster(GoodNameServer):
    """A cluster without a name is one in which nobody is."""

    def cluster_of(self, said: DeleteTopicRouteRequest) -> str | None:
        return said.cluster_name


class DeletesAtOne(GoodNameServer):
    """One broker forgets a topic."""

    def forgotten(self, topic: str, cluster: str | None) -> Iterable[Broker]:
        return [each for each in super().forgotten(topic, cluster) if topic in each.topics][:1]


class DeletesAllTopics(GoodNameServer):
    """With a topic all of its broker go."""

    def forgotten(self, topic: str, cluster: str | None) -> Iterable[Broker]:
        every = list(super().forgotten(topic, cluster))
        for each in every:
            each.topics.clear()
        return every


class DeletesBrokers(GoodNameServer):
    """With a topic its broker goes."""

    def forgotten(self, topic: str, cluster: str | None) -> Iterable[Broker]:
        for each in [each for each in super().forgotten(topic, cluster) if topic in each.topics]:
            self.leave(each)
        return []


class ListsTheDeleted(GoodNameServer):
    """A topic that was listed once is listed for ever."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.ever: set[str] = set()

    def listed_topics(self) -> list[str]:
        self.ever.update(super().listed_topics())
        return sorted(self.ever)


# ---- logical queues --------------------------------------------------------------------------------


class TellsEverybody(GoodNameServer):
    """Who does not know logical queues is told them."""

    def asks_for_logical(self, said: GetRouteInfoRequest) -> bool:  # noqa: ARG002
        return True


class TellsAllIndexes(GoodNameServer):
    """Whatever index is asked for, all are told."""

    def chosen(self, said: GetRouteInfoRequest, index: int) -> bool:  # noqa: ARG002
        return True


class TellsOneIndex(GoodNameServer):
    """Of the indexes that are asked for one is told."""

    def chosen(self, said: GetRouteInfoRequest, index: int) -> bool:
        return super().chosen(said, index) and (said.logical_queue_ids_filter is None or index == 0)


class TellsPlainOnceEnabled(GoodNameServer):
    """What is not whole is told plain, enabled or not."""

    def is_withheld(self, topic: str) -> bool:  # noqa: ARG002
        return False


class TellsAsTheyCame(Mapped):
    """Segments are told in the order in which they were registered."""

    def place(self, segment: LogicalQueueSegment) -> tuple[bool, int]:  # noqa: ARG002
        return False, 0


class TheLastBrokerCounts(Mapped):
    """A registration takes the place of those of all brokers."""

    def take(self, said: RegisterBrokerRequest, table: TopicConfigTable) -> None:
        for topic in table.topic_config_table or {}:
            self.held[topic] = {}
        super().take(said, table)


class AddsSegments(Mapped):
    """What is registered comes to what was registered before."""

    def take(self, said: RegisterBrokerRequest, table: TopicConfigTable) -> None:
        before = {
            topic: dict(self.held.get(topic, {}).get(said.broker_name or "", Held("")).segments)
            for topic in table.topic_config_table or {}
        }
        super().take(said, table)
        for topic, segments in before.items():
            held = self.held[topic][said.broker_name or ""]
            held.segments = {**segments, **held.segments}


class HearsNoSeal(Mapped):
    """Ends are not told."""

    def shown(self, segments: Iterable[LogicalQueueSegment]) -> Iterable[LogicalQueueSegment]:
        return map(unsealed, segments)


class TakesForeignSegments(Mapped):
    """A broker may speak for another."""

    def is_own(self, segment: LogicalQueueSegment, name: str) -> bool:  # noqa: ARG002
        return True


class HidesTheUndecided(Mapped):
    """What is not decided is not told."""

    def shown(self, segments: Iterable[LogicalQueueSegment]) -> Iterable[LogicalQueueSegment]:
        return [each for each in segments if start_of(each) >= 0]


class HidesTheExpired(Mapped):
    """What is expired is not told, and nobody misses it."""

    def shown(self, segments: Iterable[LogicalQueueSegment]) -> Iterable[LogicalQueueSegment]:
        return [each for each in segments if each.state != "Expired"]

    def has_hole(self, segments: Sequence[LogicalQueueSegment], gone: Sequence[tuple[int, int]]) -> bool:
        return False if start_of(segments[0]) > 0 else super().has_hole(segments, gone)


class SeesNoHole(Mapped):
    """What is missing is expired."""

    def has_hole(self, segments: Sequence[LogicalQueueSegment], gone: Sequence[tuple[int, int]]) -> bool:  # noqa: ARG002
        return False


class SeesNoBeginning(Mapped):
    """What is missing before the first segment is expired."""

    def has_hole(self, segments: Sequence[LogicalQueueSegment], gone: Sequence[tuple[int, int]]) -> bool:
        return super().has_hole(segments, [*gone, (0, max(0, start_of(segments[0])))])


class BelievesNothingGone(Mapped):
    """What no segment covers is missing, whatever brokers say."""

    def gone(self, topic: str, index: int) -> Sequence[tuple[int, int]]:  # noqa: ARG002
        return []


class NeedsNoIndex(Mapped):
    """Indexes are told that there are."""

    def is_told(self, index: int, total: int) -> bool:  # noqa: ARG002
        return True

    def has_all(self, told: Segments, total: int) -> bool:  # noqa: ARG002
        return bool(told)


class NeedsNoMapping(Mapped):
    """Physical queues need not be mapped."""

    def is_mapped(self, queues: int, mapped: set[int]) -> bool:  # noqa: ARG002
        return True


class NeedsMappingsOfHolders(Mapped):
    """A broker without any mapping counts for nothing."""

    def is_mapped(self, queues: int, mapped: set[int]) -> bool:
        return not mapped or super().is_mapped(queues, mapped)


class TakesItBack(Mapped):
    """What a broker does not say any more is not enabled."""

    def kept_enabled(self, held: Held, said: LogicalQueuesEnabled | None) -> LogicalQueuesEnabled | None:  # noqa: ARG002
        return said


class TellsTheUncommitted(Mapped):
    """What is registered is told, committed or not."""

    def is_told(self, index: int, total: int) -> bool:  # noqa: ARG002
        return True

    def has_all(self, told: Segments, total: int) -> bool:
        return set(told) >= set(range(total))


class NeedsNoWriter(Mapped):
    """Who is written need not be known."""

    def enabled(self, topic: str) -> LogicalQueuesEnabled | None:
        found = super().enabled(topic)
        return found and LogicalQueuesEnabled(found.epoch, found.gone, 0, found.total)


class EveryQueueIsWritten(Mapped):
    """A queue that is only read is no queue."""

    def enabled(self, topic: str) -> LogicalQueuesEnabled | None:
        found = super().enabled(topic)
        return found and LogicalQueuesEnabled(found.epoch, found.gone, found.total, found.total)


class TellsMappedTopicsAlone(Mapped):
    """A topic that is not mapped has logical queues of its own."""

    def logical(
        self, topic: str, configs: Mapping[str, TopicConfig]
    ) -> Mapping[int, LogicalQueueSegments] | None:
        return super().logical(topic, configs) or ({} if not self.merged(topic) else None)


FAULTS: Sequence[tuple[type[Mapped], str]] = [
    (KeepsTheFirstMapping, "static/ST-ROUTE-1/8"),
    (JoinsWhatIsLed, "static/ST-ROUTE-1/9"),
    (TakesAnyEpoch, "static/ST-ROUTE-3/2"),
    (KnowsNoClock, "static/ST-ROUTE-3/4"),
    (TakesItOfAnybody, "static/ST-ROUTE-3/3"),
    (TellsOneMapping, "static/ST-ROUTE-1/3"),
    (HidesWhoLeadsNothing, "static/ST-ROUTE-1/2"),
    (ForgetsWhoLeft, "static/ST-ROUTE-1/17"),
    (KeepsMappings, "delete/ST-DELETE-1/14"),
    (TellsAsTheyCame, "logical/RIP21-MERGE-1/1"),
    (TheLastBrokerCounts, "logical/RIP21-ROUTE-1/1"),
    (AddsSegments, "logical/RIP21-MERGE-1/4"),
    (HearsNoSeal, "logical/RIP21-MERGE-1/3"),
    (TakesForeignSegments, "logical/RIP21-STORE-1/1"),
    (HidesTheUndecided, "logical/RIP21-STATE-2/1"),
    (HidesTheExpired, "logical/RIP21-STATE-4/1"),
    (SeesNoHole, "logical/RIP21-PARTIAL-1/1"),
    (SeesNoBeginning, "logical/RIP21-SILENT-1/2"),
    (BelievesNothingGone, "logical/RIP21-SILENT-1/4"),
    (NeedsNoIndex, "logical/RIP21-PARTIAL-1/2"),
    (NeedsNoMapping, "logical/RIP21-PARTIAL-1/3"),
    (NeedsMappingsOfHolders, "logical/RIP21-PARTIAL-1/4"),
    (TakesItBack, "logical/RIP21-ENABLE-1/5"),
    (TellsTheUncommitted, "logical/RIP21-ENABLE-1/6"),
    (EveryQueueIsWritten, "logical/RIP21-ENABLE-1/7"),
    (NeedsNoWriter, "logical/RIP21-SILENT-1/3"),
    (TellsMappedTopicsAlone, "logical/RIP21-COMPAT-1/1"),
    (ForgetsWhoLeft, "logical/RIP21-SILENT-1/1"),
]
CAUGHT: Sequence[tuple[type[GoodNameServer], str]] = [
    *((with_mapped(made), case) for made, case in FAULTS),
    (OneVersionOneMapping, "static/ST-ROUTE-3/1"),
    (ListensToReplicas, "static/ST-ROUTE-1/14"),
    (DeletesNothing, "delete/ST-DELETE-1/1"),
    (DeletesEverywhere, "delete/ST-DELETE-1/7"),
    (NamesNoCluster, "delete/ST-DELETE-1/15"),
    (DeletesAtOne, "delete/ST-DELETE-1/5"),
    (DeletesAllTopics, "delete/ST-DELETE-1/2"),
    (DeletesBrokers, "delete/ST-DELETE-1/9"),
    (ListsTheDeleted, "delete/ST-DELETE-1/10"),
    (TellsEverybody, "logical/RIP21-ROUTE-1/2"),
    (TellsAllIndexes, "logical/RIP21-ROUTE-1/4"),
    (TellsOneIndex, "logical/RIP21-ROUTE-1/5"),
    (TellsPlainOnceEnabled, "logical/RIP21-ENABLE-1/2"),
]
