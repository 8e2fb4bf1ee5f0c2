"""What the lab asks of ZooKeeper's protocol: metastores that the suite judges."""

from __future__ import annotations

from lab.cluster import Cluster
from lab.family import LabFamily
from lab.zookeeper.question import serves
from lab.zookeeper.subjects import METASTORE, OURS, settings, subjects


def smoke(cluster: Cluster) -> str:
    """A metastore of ours gives a session."""
    cluster.start(OURS, METASTORE, METASTORE, settings(cluster))
    port = cluster.port(METASTORE)
    cluster.until(lambda: serves(port), "a metastore that answers")
    return f"a metastore gives sessions on port {port}"


FAMILY = LabFamily(subjects=subjects, smoke=smoke)
