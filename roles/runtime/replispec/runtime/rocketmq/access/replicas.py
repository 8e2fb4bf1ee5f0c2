"""Who may copy a log: the protocol of replication has no place for a signature."""

from __future__ import annotations

from replispec.runtime.rocketmq.access.rarely_told import RarelyTold
from replispec.runtime.rocketmq.access.security import RoleOptions, is_mutual
from replispec.runtime.rocketmq.access.users import Hosts, UsersError
from replispec.runtime.rocketmq.remoting.server import host_of
from replispec.runtime.rocketmq.replication import is_plain
from replispec.runtime.world import Accepted, Level, Outbox
from replispec.wire.rocketmq import parameters as p
from replispec.wire.rocketmq.options import BrokerOptions


def replica_hosts(options: BrokerOptions) -> Hosts | None:
    """The hosts of replicas, where neither a certificate tells who they are nor everybody is served.

    Raises ConfigurationError.
    """
    if not _is_guarded(options):
        return None
    if not options.ha_allowed_hosts:
        raise p.HA_ALLOWED_HOSTS.refuse(
            options,
            "with aclEnable, the hosts of replicas; or tls.server.mode=ENFORCING,"
            " tls.server.need.client.auth=REQUIRE and tlsReplication=true",
        )
    try:
        return Hosts(options.ha_allowed_hosts)
    except UsersError as error:
        raise p.HA_ALLOWED_HOSTS.refuse(options, str(error)) from None


def _is_guarded(holder: RoleOptions) -> bool:
    options = holder.access
    return options.acl_enable and (is_plain(holder.tls) or not is_mutual(holder.tls))


class ReplicaGuard:
    """Lets replicas in. `hosts` None: all of them."""

    def __init__(self, outbox: Outbox, hosts: Hosts | None) -> None:
        self._outbox = outbox
        self._hosts = hosts
        self._lines = RarelyTold()

    def admits(self, event: Accepted) -> bool:
        """Whether whoever connected may go on; else the connection ends, and a line tells of it, not too
        often."""
        host = host_of(event.peer)
        if self._hosts is None or self._hosts.holds(host):
            return True
        self._outbox.close(event.connection)
        count = self._lines.due(host, event.now_ms)
        if count is not None:
            values = {
                "peer": event.peer,
                "reason": f"it is none of {p.HA_ALLOWED_HOSTS.name}",
                "times": count,
            }
            self._outbox.note(Level.WARNING, "replica refused", **values)
        return False
