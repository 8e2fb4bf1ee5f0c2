"""Who may ask for what: signatures of requests, users with their rights, and what each request needs.

In: a request with its bytes, and the text of the file of users. Out: whether it is served, or why not. Begin
with `Access`; what a request needs is generated (`replispec.wire.rocketmq.rights`).
"""

from replispec.runtime.rocketmq.access.access import Access
from replispec.runtime.rocketmq.access.guard import RequestGuard
from replispec.runtime.rocketmq.access.replicas import ReplicaGuard, replica_hosts
from replispec.runtime.rocketmq.access.security import OPEN, Security, is_mutual, security_of, signer_of
from replispec.runtime.rocketmq.access.signer import Sign, Signer
from replispec.runtime.rocketmq.access.users import User, Users, UsersError, read_users

__all__ = [
    "OPEN",
    "Access",
    "ReplicaGuard",
    "RequestGuard",
    "Security",
    "Sign",
    "Signer",
    "User",
    "Users",
    "UsersError",
    "is_mutual",
    "read_users",
    "replica_hosts",
    "security_of",
    "signer_of",
]
