"""The administrator: asks the processes of a cluster what they know, and for what whoever runs it wants.

In come a plan, which is a generator of questions, and the answers to them; out goes what the plan makes of
the answers, or why it cannot. A plan asks several processes at once and decides nothing else; nothing here
knows how its result is worded. `FAMILY/node.py` carries a plan out as a node; begin with `FAMILY/plans.py`.
"""
