"""Who sends messages to a cluster and reads them: what a program asks, where it asks, and two nodes.

In: questions of a program (send, pull, where a queue begins and ends, where a group is). Out: one answer
each, or why there is none. Begin with `steps`, then `asking` and `routes`; `client` carries steps out.
"""

from replispec.runtime.rocketmq.client.asking import Failed
from replispec.runtime.rocketmq.client.client import Client
from replispec.runtime.rocketmq.client.consumer import Begin, ConsumerNode, Reading
from replispec.runtime.rocketmq.client.messages import MessageToSend, ReadMessage
from replispec.runtime.rocketmq.client.producer import ProducerNode
from replispec.runtime.rocketmq.client.routes import ClientQueue, Route
from replispec.runtime.rocketmq.client.steps import Pulled, Stored

__all__ = [
    "Begin",
    "Client",
    "ClientQueue",
    "ConsumerNode",
    "Failed",
    "MessageToSend",
    "ProducerNode",
    "Pulled",
    "ReadMessage",
    "Reading",
    "Route",
    "Stored",
]
