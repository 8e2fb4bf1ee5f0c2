"""Machines of the specification, stepped over what was seen.

A *walk* keeps every state that is still possible; what none of them allows is a fault.
A *fold* goes from state to state, event by event: `folds` steps long runs of events at once, by what
`traces` found out about its step.
"""
