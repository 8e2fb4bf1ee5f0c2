"""What the lab asks of RocketMQ."""

from __future__ import annotations

from collections.abc import Iterator

from lab.cluster import Cluster
from lab.family import Demo, Edited, Interop, LabFamily
from lab.rocketmq import demo, demo_queues, questions, settings
from lab.rocketmq.adapter import LabPrograms
from lab.rocketmq.apache import Apache, JraftApache
from lab.rocketmq.fetch import ARTEFACTS
from lab.rocketmq.interop import scenarios
from lab.rocketmq.kills import KILLED
from lab.rocketmq.roles import OURS
from lab.rocketmq.serving import CONTROLLER
from lab.subjects.subject import Subject

# The release whose second kind of group is tried too.
JRAFT_RELEASE = "5.4.0"
# Every send of the lab waits for the whole SyncStateSet.
REPLAY_OPTIONS = ("--all-ack-in-sync-state-set",)
QUEUES = (
    *("logical_queue_migration", "logical_queue_segment", "logical_queue_topic"),
    *("static_topic_queue", "static_topic_remapping"),
)
"""Machines of logical queues and static topics."""


def subjects() -> Iterator[Subject]:
    """Ours, and every release of Apache RocketMQ whose jars are pinned."""
    yield OURS
    yield JraftApache(JRAFT_RELEASE)
    for path in ARTEFACTS.glob(f"{Apache.implementation}-*.txt"):
        yield Apache(path.stem.removeprefix(f"{Apache.implementation}-"))


def smoke(cluster: Cluster) -> str:
    """A controller of ours leads and answers."""
    cluster.start(OURS, CONTROLLER, CONTROLLER, settings.controller(cluster))
    port = cluster.port(CONTROLLER)
    cluster.until(lambda: questions.controller_serves(port), "a controller that answers")
    return f"a controller leads and answers on port {port}"


FAMILY = LabFamily(
    subjects=subjects,
    smoke=smoke,
    demo=Demo(demo.play, REPLAY_OPTIONS),
    killed=KILLED,
    interop=Interop(
        f"Apache RocketMQ {scenarios.APACHE.release}",
        scenarios.APACHE.fetch,
        scenarios.SCENARIOS,
        REPLAY_OPTIONS,
    ),
    edited=Edited(
        # What decides about controllers, replication and mapped topics. Overlays say what others do, and are
        # left alone.
        machines=(
            *("broker_registration", "broker_role", "broker_set", "controller", "election_hearing"),
            *("ha_master", "ha_replica", "learner", "name_server", "replicas_manager"),
            *QUEUES,
        ),
        # What is bound to messages: of replication, the frames that are sent.
        bound=(
            "broker_set",
            "broker_registration",
            "broker_role",
            "controller",
            "ha_master",
            "ha_replica",
            "learner",
            "name_server",
            "replicas_manager",
            *QUEUES,
        ),
        messages=("controller", "ha", "logical_queue", "static_topic"),
        other_releases=("apache@..5.0.0", "apache@9.0.0.."),
    ),
    adapted=LabPrograms,
    more_demos={"queues": Demo(demo_queues.play, REPLAY_OPTIONS)},
    foreign_variables=("NAMESRV_ADDR", "ROCKETMQ_HOME", "ROCKETMQ_SERIALIZE_TYPE"),
)
