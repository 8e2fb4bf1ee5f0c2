"""Machines of the specification, stepped over what was seen.

A *walk* keeps every state that is still possible; what none of them allows is a fault.
"""
