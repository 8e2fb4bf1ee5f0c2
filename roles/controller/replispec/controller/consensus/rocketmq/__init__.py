"""A controller that is alone, and what records and states of controllers' logs are on a disk."""

from replispec.controller.consensus.rocketmq.single_node import SingleNode, term_alone

__all__ = ["SingleNode", "term_alone"]
