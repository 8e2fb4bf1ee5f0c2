"""The roles of a RocketMQ cluster, and how every subject that plays them is served to the suite."""

from __future__ import annotations

from collections.abc import Mapping

from lab.cluster import Cluster
from lab.rocketmq import serving
from lab.rocketmq.serving import BROKER, CONTROLLER
from lab.subjects.ours import OwnRoles
from lab.subjects.subject import Subject
from replispec.wire.rocketmq.codes import Release
from replispec.wire.rocketmq.controller import EpochEntryCache

NAME_SERVER, GROUP = "name-server", "controller-group"
STATIC_TOPIC = "static-topic"
PLAYED = ("ha-replica", "registering-broker", "learner")


class RocketmqSubject(Subject):
    """One release of one implementation of controller or broker."""

    kinds: Mapping[str, str] = {"controller": CONTROLLER, "ha-master": BROKER}

    def serve(self, cluster: Cluster, kind: str) -> dict[str, object]:
        """A controller alone, or a master with its controller and name server. See Subject.serve."""
        return serving.serve(cluster, self, kind)

    def suite_options(self, ready: Mapping[str, object]) -> Mapping[str, object]:
        """Where a master's controller and name server are, and what its broker set is called."""
        return {
            "--controller": ready.get("controller"),
            "--broker": ready.get("broker"),
            "--broker-set": EpochEntryCache.from_json(ready).broker_name,
        }


class OurRoles(OwnRoles, RocketmqSubject):
    """Our roles, with the files that Java reads; they speak the newest release of the specification."""

    adapted = (NAME_SERVER, GROUP, *PLAYED, STATIC_TOPIC)
    speaks = max(Release).name.removeprefix("V").replace("_", ".")


OURS = OurRoles()
