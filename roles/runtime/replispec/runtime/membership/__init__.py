"""How a process becomes and stays a member of a broker set: its identity, controller and name servers."""

from replispec.runtime.membership.controllers import Controllers
from replispec.runtime.membership.epoch_cache import epoch_cache
from replispec.runtime.membership.figures import runtime_info
from replispec.runtime.membership.identity import Identity, IdentityFiles, IdentityRefused
from replispec.runtime.membership.name_servers import Announcement, NameServers
from replispec.runtime.membership.registration import Registration
from replispec.runtime.membership.walking import Nothing, Walker

__all__ = [
    "Announcement",
    "Controllers",
    "Identity",
    "IdentityFiles",
    "IdentityRefused",
    "NameServers",
    "Nothing",
    "Registration",
    "Walker",
    "epoch_cache",
    "runtime_info",
]
