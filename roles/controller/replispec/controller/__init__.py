"""The controller: decides who is master of each broker set, and remembers it in a log of its own.

In come requests of brokers and administrators; out go answers, and notifications about a new master. What a
request changes is first written to a log (`consensus`), then applied, then answered, so that a restart, or
another member of a group of controllers, comes to the same state.

`consensus` is the seam of that log: propose an entry, learn what is to be written, take what is committed.
`SingleNode` (`consensus/FAMILY`) is a group of one. `FAMILY/node.py` is the role; begin there.
"""
