"""A member of a group of several controllers, on the core of the agreement."""

from replispec.controller.consensus.raft.group import ControllerGroup, GroupNode, number_of
from replispec.runtime.raft.core import Chance

__all__ = ["Chance", "ControllerGroup", "GroupNode", "number_of"]
