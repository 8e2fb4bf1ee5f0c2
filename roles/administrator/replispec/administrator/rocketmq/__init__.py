"""The administrator of a cluster: plans that ask controllers, name servers and brokers, and the node that
carries one out."""

from replispec.administrator.rocketmq.node import AdministratorNode
from replispec.administrator.rocketmq.plans import (
    Asking,
    NotAsWantedError,
    NotGrantedError,
    Plan,
    Reply,
    SilentError,
    granted,
)

__all__ = [
    "AdministratorNode",
    "Asking",
    "NotAsWantedError",
    "NotGrantedError",
    "Plan",
    "Reply",
    "SilentError",
    "granted",
]
