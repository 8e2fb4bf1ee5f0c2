"""A member of a group of several controllers, on the core of the agreement."""

from replispec.controller.consensus.raft.group import Chance, ControllerGroup, GroupNode, number_of

__all__ = ["Chance", "ControllerGroup", "GroupNode", "number_of"]
