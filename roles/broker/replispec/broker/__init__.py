"""The broker: keeps a commit log, as master or as replica, and serves those who write and read it.

In come messages of producers, pulls of consumers, bytes of a master's log, answers of controllers; out go
acknowledgements, messages, and bytes for replicas. Whether it is master is never its own decision: a
controller says so, and the broker follows. `FAMILY/node.py` is the role; begin there.
"""
