"""What must be true of a cluster of partitions when all was healed and nobody sends any more."""

from __future__ import annotations

from replispec.wire.kafka import paths
from tests.sim_kafka.cluster import LEARNED, PartitionsCluster, StoredPartition, values_in
from tests.sim_kafka.history import PartitionName
from tests.sim_kafka.watching import PartitionsWatch


def unsettled(cluster: PartitionsCluster, watch: PartitionsWatch) -> list[str]:
    """What is still to come: wishes, members, leaders."""
    tree = cluster.tree
    if tree is None:
        return ["no metastore"]
    found = [f"wish {each}" for each in cluster.administrator.wishes]
    if tree.find(paths.APACHE_REASSIGNMENTS.at()) is not None:
        found.append("a reassignment is wished")
    found += [f"{each} is to be deleted" for each in sorted(cluster.going)]
    for key, known in cluster.stored.items():
        if known.moves:
            found.append(f"{key} moves")
        if known.leader < 0 or set(known.isr) != set(known.assigned):
            found.append(f"{key}: {known}")
    found += _not_taken(cluster, watch)
    return found


def _not_taken(cluster: PartitionsCluster, watch: PartitionsWatch) -> list[str]:
    """Moves that were asked for and are neither done nor refused."""
    found = []
    for key, targets in cluster.administrator.moved.items():
        known = cluster.stored.get(key)
        if known is None or key in watch.refused or key[0] != LEARNED:
            # A topic that was made again lies where it was made.
            continue
        if list(known.assigned) not in targets:
            found.append(f"{key} lies at {known.assigned}, not where it was moved: {targets}")
    return found


def judged(cluster: PartitionsCluster, watch: PartitionsWatch) -> tuple[list[str], list[str]]:
    """What is wrong, and losses that may be."""
    wrong: list[str] = []
    excused: list[str] = []
    logs = {number: cluster.logs(number) for number in cluster.brokers}
    for key, known in cluster.stored.items():
        lost = _differing(key, known, logs) + _missed(cluster, key, known, logs)
        (excused if watch.may_lose(key) else wrong).extend(lost)
        wrong += _invented(cluster, key, known, logs)
    wrong += _folders(cluster, logs)
    if not any(watch.may_lose(key) for key in cluster.stored):
        wrong += _exported(cluster, logs)
    return wrong, excused


Logs = dict[int, dict[PartitionName, bytes]]


def _differing(key: PartitionName, known: StoredPartition, logs: Logs) -> list[str]:
    """Whose log is not that of the leader, byte for byte."""
    leads = logs.get(known.leader, {}).get(key, b"")
    return [
        f"the log of {key} at {each} is not that of its leader {known.leader}"
        for each in known.assigned
        if logs[each].get(key, b"") != leads
    ]


def _missed(cluster: PartitionsCluster, key: PartitionName, known: StoredPartition, logs: Logs) -> list[str]:
    """What was acknowledged or read and is not in the log, and what no consumer was given."""
    held = dict(enumerate(values_in(logs.get(known.leader, {}).get(key, b""))))
    history = cluster.history
    missed = [
        f"{value} was acknowledged at {place}, where {held.get(place.offset)} is"
        for value, place in history.acknowledged.items()
        if place.key == key and place.generation == known.generation and held.get(place.offset) != value
    ]
    for place, value in history.read.items():
        if place.key == key and place.generation == known.generation and held.get(place.offset) != value:
            missed.append(f"{value} was read at {place}, where {held.get(place.offset)} is")
    position = cluster.client.positions.get((key, known.generation), 0)
    if position != len(held):
        missed.append(f"{key}: a consumer read up to {position} of {len(held)}")
    return missed


def _invented(
    cluster: PartitionsCluster, key: PartitionName, known: StoredPartition, logs: Logs
) -> list[str]:
    """Records that nobody sent there, or that are there twice."""
    held = values_in(logs.get(known.leader, {}).get(key, b""))
    sent = cluster.history.sent
    wrong = [f"{key} holds {value}" for value in held if value not in sent or sent[value].key != key]
    if len(set(held)) < len(held):
        wrong.append(f"{key} holds a record twice")
    return wrong


def _folders(cluster: PartitionsCluster, logs: Logs) -> list[str]:
    """Records, topics and folders that do not name the same partitions."""
    wrong = []
    for number, found in logs.items():
        assigned = {key for key, known in cluster.stored.items() if number in known.assigned}
        if (orphans := set(found) - assigned) or assigned - set(found):
            wrong.append(f"{number} has {sorted(orphans)} and lacks {sorted(assigned - set(found))}")
    prefix = f"{paths.APACHE_TOPICS.at()}/"
    for path, _ in cluster.tree.nodes():
        if path.startswith(prefix) and path.endswith("/state"):
            topic, _, rest = path.removeprefix(prefix).partition("/partitions/")
            if (topic, int(rest.partition("/")[0])) not in cluster.stored:
                wrong.append(f"the record {path} is of no partition")
    wrong += [f"{key} has no record" for key, known in cluster.stored.items() if known.version < 0]
    return wrong


def _exported(cluster: PartitionsCluster, logs: Logs) -> list[str]:
    """What the learner told that the logs do not hold, twice, out of order, or did not tell."""
    told: dict[PartitionName, list[str]] = {}
    wrong = []
    for line in cluster.exported():
        key = (line["topic"], line["partition"])
        values = told.setdefault(key, [])
        if "cut" in line or line["offset"] != len(values):
            wrong.append(f"the learner told {line} after {len(values)}")
        else:
            values.append(line["value"])
    for key, known in cluster.stored.items():
        if key[0] == LEARNED:
            held = values_in(logs.get(known.leader, {}).get(key, b""))
            if held != told.get(key, []):
                wrong.append(f"the learner told {len(told.get(key, []))} of {len(held)} of {key}, or others")
    return wrong
