"""A member of a group of several controllers, on the core of the agreement."""

from replispec.controller.consensus.raft.group import GroupNode, joined_state
from replispec.controller.consensus.raft.places import ControllerGroup, MemberPlaces, is_id, number_of
from replispec.runtime.raft.core import Chance

__all__ = ["Chance", "ControllerGroup", "GroupNode", "MemberPlaces", "is_id", "joined_state", "number_of"]
