"""Remoting between processes without a socket: requests that come in, requests that go out."""

from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.rocketmq.remoting.prepared import Prepared
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request, RequestServer, host_of
from replispec.runtime.rocketmq.remoting.shares import Shares

__all__ = [
    "BROKER_RELEASE",
    "Calls",
    "Failure",
    "Outcome",
    "Prepared",
    "Request",
    "RequestServer",
    "Shares",
    "host_of",
]
