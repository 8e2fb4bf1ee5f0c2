"""The learner: copies a commit log without being a member of anything, and exports confirmed messages.

In come bytes of a master's log and answers of controllers and name servers; out go reports of how much it
has, and one line of JSON for each confirmed message. It never counts for a confirmation and is never elected.
`FAMILY/node.py` is the role; begin there.
"""
