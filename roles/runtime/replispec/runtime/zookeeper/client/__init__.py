"""A session at a metastore: what a role that keeps its records there is made of.

Begin with `client.py`. `session` keeps the session over connections and servers, `settling` finds out what
became of a change whose answer was lost, `watching` reads again what it watches, `batches` makes few requests
of many changes.
"""

from replispec.runtime.zookeeper.client.batches import BatchItem, change_all
from replispec.runtime.zookeeper.client.client import MetastoreClient
from replispec.runtime.zookeeper.client.session import MetastoreAnswer, SessionStanding
from replispec.runtime.zookeeper.client.watching import SeenNode, Watching

__all__ = [
    "BatchItem",
    "MetastoreAnswer",
    "MetastoreClient",
    "SeenNode",
    "SessionStanding",
    "Watching",
    "change_all",
]
