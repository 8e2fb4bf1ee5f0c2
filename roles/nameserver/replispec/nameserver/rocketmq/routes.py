"""Routes: what brokers registered, by broker set and by topic, as long as their heartbeats come.

A name server decides nothing. It believes the newest registration, with one exception: an address that is
named for an id that a live registration of a later stateVersion (the masterEpoch) has for another address
is passed over, so that a master that was replaced cannot take the route of its successor. And it believes
nobody who speaks from another host for a broker that is heard, nor who takes the id of one and was no broker
of its set before: whoever it is, the one that is heard knows better.
Source: apache/rocketmq rocketmq-all-5.4.0, RouteInfoManager; other than there, the first registration of a
broker with one topic is taken like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from replispec.nameserver.rocketmq.mappings import Said, ToldMappings
from replispec.nameserver.rocketmq.registered import Limits, Live, RegisteredSet, RouteRegistration
from replispec.runtime.primitives.bindings import Kept
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues.forms import message_of_queues
from replispec.runtime.rocketmq.queues.model import LogicalQueue
from replispec.runtime.rocketmq.queues.telling import HeardQueues, lack_of
from replispec.runtime.rocketmq.remoting import Shares
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    BrokerData,
    BrokerNameList,
    ClusterBrokerData,
    ClusterInfo,
    DataVersion,
    QueueData,
    TopicList,
    TopicRouteData,
)
from replispec.wire.rocketmq.codes import Permission
from replispec.wire.rocketmq.static_topic import TopicQueueMappingInfo

HEARD_MS: Final = constants.ROUTE_TIMEOUT_MS // 3
"""A broker that registered so long ago, and said nothing since, may have moved."""


@dataclass(frozen=True, slots=True)
class _Logical:
    """The logical queues of a topic; `lack`: what is missing of them, so that they are not told."""

    heard: HeardQueues
    lack: str | None


Key = tuple[str, str]
"""A cluster and an address in it."""


class Routes:
    """The table. Times are milliseconds of one clock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._live: dict[Key, Live] = {}
        self._by_connection: dict[int, set[Key]] = {}
        self._sets: dict[str, RegisteredSet] = {}
        self._holders: dict[str, set[str]] = {}
        self._mappings = ToldMappings(limits.segments)
        self._routes: dict[str, Kept[TopicRouteData]] = {}
        self._logical: dict[str, _Logical] = {}
        self._logical_routes: dict[str, Kept[TopicRouteData]] = {}
        self.faults: Mapping[str, str] = {}
        # Topics that are enabled, of which all logical queues were there when somebody looked last.
        self._told: set[str] = set()
        self.withdrawn: Mapping[str, str] = {}
        """Topics that the last registration keeps from being told, and what is missing of them since."""
        self._clusters: Kept[ClusterInfo] | None = None
        self._names: Kept[TopicList] | None = None
        self._topics = 0
        self._registrations = Shares[Key](limits.brokers)
        # Broker sets that have topics, by the host that registered the first of each.
        self._held_topics = Shares[str](limits.topics)

    def sizes(self) -> tuple[int, int, int]:
        """How many brokers are registered, of how many sets, and how many topics have a route."""
        return len(self._live), len(self._sets), len(self._holders)

    def is_strangers(self, new: RouteRegistration, host: str, now_ms: int) -> bool:
        """Whether a registration from this host is of another broker's address, or takes another's id."""
        known = self._live.get((new.cluster, new.address))
        if known is not None and known.registration.broker_name == new.broker_name:
            return known.host != host and now_ms < known.received_ms + HEARD_MS
        broker_set = self._sets.get(new.broker_name)
        if broker_set is None or (held := broker_set.addresses.get(new.broker_id)) is None:
            return False
        holder = self._live.get((broker_set.cluster, held))
        if holder is None or holder.host == host or now_ms >= holder.received_ms + HEARD_MS:
            return False
        members = [self._live.get((broker_set.cluster, each)) for each in broker_set.addresses.values()]
        return all(each is None or each.host != host for each in members)

    def register(self, new: RouteRegistration, connection: int, host: str, now_ms: int) -> bool:
        """Take a registration; false when it is one too many. `faults` says then what of its mappings was not
        taken, and why, by topic; `withdrawn` what is told no more because of it."""
        self.faults = self.withdrawn = {}
        key = (new.cluster, new.address)
        known = self._live.get(key)
        if len(new.topics) > self._limits.topics:
            return False
        if known is None and self._registrations.is_full:
            going = self._registrations.giving_way(host)
            if going is None:
                return False
            self._remove(going)
        if self._is_replaced(new):
            if known is not None:
                self._remove(key)
            return True
        if known is not None and known.registration.broker_name != new.broker_name:
            self._remove(key)
            known = None
        broker_set = self._sets.setdefault(new.broker_name, RegisteredSet(new.cluster))
        before = broker_set.told()
        broker_set.cluster, broker_set.zone = new.cluster, new.zone
        broker_set.acting_master = bool(new.acting_master)
        if new.broker_id == constants.MASTER_ID and broker_set.addresses.get(new.broker_id) != new.address:
            self._is_known_in_part(new.broker_name)
        for broker_id in [each for each, at in broker_set.addresses.items() if at == new.address]:
            del broker_set.addresses[broker_id]
        broker_set.addresses[new.broker_id] = new.address
        is_whole = False
        if new.broker_id == min(broker_set.addresses):
            is_whole = self._take_held(broker_set, new, known, host)
        if broker_set.told() != before:
            self._changed_set(broker_set)
        self._forget_live(key)
        self._registrations.take(host, key)
        said = replace(new, topics={}, mappings=Said())
        self._live[key] = Live(said, connection, host, now_ms, is_whole)
        self._by_connection.setdefault(connection, set()).add(key)
        return True

    def _take_held(
        self, broker_set: RegisteredSet, new: RouteRegistration, known: Live | None, host: str
    ) -> bool:
        """What the master, or who stands in for it, holds; true when it is the master, of which all is known
        from now on."""
        fresh = self._told & (new.topics.keys() - broker_set.queues.keys())
        all_taken = self._take_topics(broker_set, new, known, host)
        who, is_master = (new.cluster, new.broker_name), new.broker_id == constants.MASTER_ID
        held = broker_set.queues
        self.faults = self._mappings.take(who, host, new.mappings, held, is_master=is_master)
        for name, topics in self._mappings.displaced.items():
            self._changed(topics)
            self._is_known_in_part(name)
        self._changed(self._mappings.changed)
        self.withdrawn = self._withdrawn(fresh.union(self._mappings.changed))
        self._is_known_in_part(new.broker_name)
        return is_master and all_taken and not self.faults

    def _is_known_in_part(self, name: str) -> None:
        """Of the brokers of a set something is not known any more, or by the word of another."""
        if (broker_set := self._sets.get(name)) is None:
            return
        for address in broker_set.addresses.values():
            if (live := self._live.get((broker_set.cluster, address))) is not None:
                live.is_whole = False

    def is_whole(self, cluster: str, address: str) -> bool:
        """Whether all that a master registered is known."""
        live = self._live.get((cluster, address))
        return live is not None and live.is_whole

    def master_of(self, broker_name: str) -> RouteRegistration | None:
        """What the live master of a broker set said about itself."""
        broker_set = self._sets.get(broker_name)
        address = None if broker_set is None else broker_set.addresses.get(constants.MASTER_ID)
        if broker_set is None or address is None:
            return None
        live = self._live.get((broker_set.cluster, address))
        return None if live is None else live.registration

    def version_of(self, cluster: str, address: str) -> DataVersion | None:
        """The version of the topics that a live broker registered last."""
        live = self._live.get((cluster, address))
        return None if live is None else live.registration.version

    def refresh(self, cluster: str, address: str, now_ms: int) -> None:
        """A broker has sent a heartbeat; one that did not register stays unknown."""
        live = self._live.get((cluster, address))
        if live is not None:
            live.received_ms = now_ms

    def unregister(self, cluster: str, broker_name: str, address: str, host: str) -> None:
        """A broker says that it stops; of others, from another host, it is not believed."""
        live = self._live.get((cluster, address))
        if live is not None and live.registration.broker_name == broker_name and live.host == host:
            self._remove((cluster, address))

    def closed(self, connection: int) -> list[RouteRegistration]:
        """Forget those whose newest registration came on this connection, and name them."""
        return [self._remove(key) for key in sorted(self._by_connection.get(connection, ()))]

    def expired(self, now_ms: int) -> list[tuple[int, RouteRegistration]]:
        """Forget brokers that were silent for too long, and name them with their connections."""
        late = [(key, live.connection) for key, live in self._live.items() if live.until_ms < now_ms]
        return [(connection, self._remove(key)) for key, connection in late]

    def forget(self, topic: str, cluster: str | None) -> None:
        """Forget a topic, of all brokers or of those of one cluster, until one of them registers it again."""
        for name in {*self._holders.get(topic, ()), *self._mappings.saying(topic)}:
            self._is_known_in_part(name)
        for name in sorted(self._holders.get(topic, ())):
            if cluster is None or self._sets[name].cluster == cluster:
                del self._sets[name].queues[topic]
                self._topics -= 1
                self._hold_topics("", name, -1)
                self._drop_holder(topic, name)
        self._told.discard(topic)
        self._mappings.forget(topic, None if cluster is None else [cluster])
        self._changed([topic])

    def withheld(self, topic: str) -> str | None:
        """What is missing of logical queues that are enabled; None: nothing is, or they are not."""
        logical = self._logical_of(topic)
        return logical.lack if logical.heard.is_enabled else None

    def logical_route(
        self, topic: str, indexes: Collection[int] | None = None
    ) -> Kept[TopicRouteData] | None:
        """The route with logical queues, all of them or these, where nothing of them is missing."""
        plain, logical = self.route(topic), self._logical_of(topic)
        if plain is None or logical.lack is not None:
            return plain
        if indexes is not None:
            chosen = [each for each in logical.heard.told if each.index in indexes]
            return Kept(_with_logical(plain.message, topic, chosen))
        route = self._logical_routes.get(topic)
        if route is None:
            route = Kept(_with_logical(plain.message, topic, logical.heard.told))
            self._logical_routes[topic] = route
        return route

    def _logical_of(self, topic: str) -> _Logical:
        found = self._logical.get(topic)
        if found is None:
            heard = self._mappings.heard(topic)
            found = _Logical(heard, self._lack_of(heard, topic))
            if heard.total:
                self._logical[topic] = found
            if heard.enabled is not None and found.lack is None and len(self._told) < self._limits.topics:
                self._told.add(topic)
        return found

    def _lack_of(self, heard: HeardQueues, topic: str) -> str | None:
        holders = self._holders.get(topic)
        if not holders:
            return "no broker of it is heard"
        if self._mappings.is_led(topic):
            return "it is a static topic"
        if heard.enabled is None and heard.untaken:
            return f"what {heard.untaken[0]} registers of them was not taken"
        written = {name: _written(self._sets[name].queues[topic]) for name in sorted(holders)}
        known = {*self._mappings.stating(topic), *heard.waiting}
        unsaid = [name for name, queues in written.items() if queues and name not in known]
        if heard.enabled is not None and unsaid:
            return f"{unsaid[0]} does not say yet that they are enabled"
        return lack_of(heard, written)

    def _withdrawn(self, topics: Collection[str]) -> Mapping[str, str]:
        """Those of topics that are enabled, and were told so far, of which something is missing now."""
        found = {}
        for topic in sorted(topics):
            logical = self._logical_of(topic)
            if logical.lack is not None and topic in self._told and logical.heard.enabled is not None:
                self._told.discard(topic)
                found[topic] = logical.lack
        return found

    def _static(self, topic: str) -> dict[str, TopicQueueMappingInfo] | None:
        """What brokers lead of a static topic. Who leads nothing makes none of a topic whose logical queues
        are all there."""
        static = self._mappings.static(topic)
        if static is None or self._mappings.is_led(topic) or self._logical_of(topic).lack is not None:
            return static
        return None

    def route(self, topic: str) -> Kept[TopicRouteData] | None:
        """Who holds a topic; None when nobody does."""
        route = self._routes.get(topic)
        if route is None and topic in self._holders:
            route = self._routes[topic] = Kept(self._route(topic))
        return route

    def _changed(self, topics: Iterable[str]) -> None:
        """What was told of these topics is told no more."""
        for topic in topics:
            self._routes.pop(topic, None)
            self._logical.pop(topic, None)
            self._logical_routes.pop(topic, None)

    def _changed_set(self, broker_set: RegisteredSet) -> None:
        """Nor what was told of the brokers of a set."""
        self._clusters = None
        self._changed(broker_set.queues)

    def topics(self) -> Kept[TopicList]:
        """The names of all topics that anybody holds."""
        if self._names is None:
            self._names = Kept(TopicList(topic_list=sorted(self._holders)))
        return self._names

    def clusters(self) -> Kept[ClusterInfo]:
        """All brokers."""
        if self._clusters is None:
            self._clusters = Kept(self._all())
        return self._clusters

    def _all(self) -> ClusterInfo:
        names: dict[str, list[str]] = {}
        for name, broker_set in sorted(self._sets.items()):
            names.setdefault(broker_set.cluster, []).append(name)
        return ClusterInfo(
            {
                name: ClusterBrokerData(
                    dict(sorted(each.addresses.items())),
                    name,
                    each.cluster,
                    each.acting_master,
                    each.zone,
                )
                for name, each in sorted(self._sets.items())
            },
            {cluster: BrokerNameList(found) for cluster, found in sorted(names.items())},
        )

    def _route(self, topic: str) -> TopicRouteData:
        holders = sorted(self._holders[topic])
        sets = [(name, self._sets[name]) for name in holders]
        return TopicRouteData(
            [
                BrokerData(
                    dict(sorted(each.addresses.items())),
                    name,
                    each.cluster,
                    each.acting_master,
                    each.zone,
                )
                for name, each in sets
            ],
            {},
            [each.queues[topic] for _, each in sets],
            topic_queue_mapping_by_broker=self._static(topic),
        )

    def _is_replaced(self, new: RouteRegistration) -> bool:
        """Whether a live broker holds this id at another address with a later stateVersion."""
        broker_set = self._sets.get(new.broker_name)
        address = None if broker_set is None else broker_set.addresses.get(new.broker_id)
        if broker_set is None or address is None or address == new.address:
            return False
        holder = self._live.get((broker_set.cluster, address))
        return holder is not None and _state(holder.registration) > _state(new)

    def _take_topics(
        self, broker_set: RegisteredSet, new: RouteRegistration, known: Live | None, host: str
    ) -> bool:
        """The topics of the master, or of who stands in for it, unless its version did not change; false when
        there is no room for all."""
        is_unchanged = known is not None and known.registration.version == new.version
        if is_unchanged and new.topics.keys() <= broker_set.queues.keys():
            return True
        before = len(broker_set.queues)
        for name, topic in new.topics.items():
            if name not in broker_set.queues:
                if self._topics >= self._limits.topics:
                    self._hold_topics(host, new.broker_name, len(broker_set.queues) - before)
                    before = len(broker_set.queues)
                    if not self._make_room_for_topics(host, new.broker_name):
                        return False
                self._topics += 1
            queues = QueueData(
                new.broker_name,
                topic.perm,
                topic.read_queue_nums,
                topic.topic_sys_flag,
                topic.write_queue_nums,
            )
            if broker_set.queues.get(name) != queues:
                broker_set.queues[name] = queues
                self._changed([name])
            self._hold(name, new.broker_name)
        self._hold_topics(host, new.broker_name, len(broker_set.queues) - before)
        return True

    def _hold(self, topic: str, name: str) -> None:
        """A broker set has a topic."""
        holders = self._holders.get(topic)
        if holders is None:
            self._names = None
            holders = self._holders[topic] = set()
        holders.add(name)

    def _hold_topics(self, host: str, broker_name: str, count: int) -> None:
        """A broker set has so many topics more."""
        if broker_name in self._held_topics:
            self._held_topics.grow(broker_name, count)
        elif count:
            self._held_topics.take(host, broker_name, weight=count)

    def _make_room_for_topics(self, host: str, broker_name: str) -> bool:
        """The newest broker set of the host that has most topics gives way, if that is another host."""
        going = self._held_topics.giving_way(host)
        if going is None or going == broker_name:
            return False
        broker_set = self._sets[going]
        for address in list(broker_set.addresses.values()):
            if (broker_set.cluster, address) in self._live:
                self._remove((broker_set.cluster, address))
        return self._topics < self._limits.topics

    def _forget_live(self, key: Key) -> Live | None:
        live = self._live.pop(key, None)
        if live is not None:
            self._registrations.drop(key)
            keys = self._by_connection[live.connection]
            keys.discard(key)
            if not keys:
                del self._by_connection[live.connection]
        return live

    def _remove(self, key: Key) -> RouteRegistration:
        live = self._forget_live(key)
        assert live is not None, f"{key} is not live"
        gone = live.registration
        broker_set = self._sets.get(gone.broker_name)
        # A master that registered from elsewhere since is not lost with its old address.
        is_master = gone.broker_id == constants.MASTER_ID
        if is_master and (broker_set is None or broker_set.addresses.get(gone.broker_id) == gone.address):
            self._mappings.lost(gone.broker_name)
            self._changed(self._mappings.of(gone.broker_name))
        if broker_set is None:
            return gone  # its id was taken by another, and that one has left
        self._changed_set(broker_set)
        for broker_id in [each for each, at in broker_set.addresses.items() if at == gone.address]:
            del broker_set.addresses[broker_id]
        if not broker_set.addresses:
            self._remove_set(gone.broker_name)
        return gone

    def _remove_set(self, name: str) -> None:
        self._held_topics.drop(name)
        queues = self._sets.pop(name).queues
        self._topics -= len(queues)
        for topic in queues:
            self._drop_holder(topic, name)

    def _drop_holder(self, topic: str, name: str) -> None:
        holders = self._holders[topic]
        holders.discard(name)
        if not holders:
            del self._holders[topic]
            self._names = None


def _with_logical(plain: TopicRouteData, topic: str, queues: Collection[LogicalQueue]) -> TopicRouteData:
    return replace(plain, logical_queues_info=message_of_queues(queues, topic).queues)


def _written(queue: QueueData) -> int:
    """How many queues of a broker take messages."""
    may_write = rules.has_bit(queue.perm or 0, Permission.WRITE)
    return queue.write_queue_nums or 0 if may_write else 0


def _state(registration: RouteRegistration) -> int:
    return registration.version.state_version or 0
