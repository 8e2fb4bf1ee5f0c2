"""How a process becomes and stays a member of a broker set: its identity, controller and name servers."""

from replispec.runtime.rocketmq.membership.answers import Complaints
from replispec.runtime.rocketmq.membership.asked_set import AskedSet, asked_set_file, read_asked_set
from replispec.runtime.rocketmq.membership.controllers import Controllers
from replispec.runtime.rocketmq.membership.epoch_cache import epoch_cache
from replispec.runtime.rocketmq.membership.identity import Identity, IdentityFiles, IdentityRefused
from replispec.runtime.rocketmq.membership.log_questions import LogQuestions
from replispec.runtime.rocketmq.membership.machine_runner import MachineRunner, Nothing
from replispec.runtime.rocketmq.membership.name_servers import Announcement, NameServers
from replispec.runtime.rocketmq.membership.registration import Registration
from replispec.runtime.rocketmq.membership.statistics import runtime_info

__all__ = [
    "Announcement",
    "AskedSet",
    "Complaints",
    "Controllers",
    "Identity",
    "IdentityFiles",
    "IdentityRefused",
    "LogQuestions",
    "MachineRunner",
    "NameServers",
    "Nothing",
    "Registration",
    "asked_set_file",
    "epoch_cache",
    "read_asked_set",
    "runtime_info",
]
