"""What ZooKeeper's machines call as `rules`, and what roles share that keep their records in a metastore.

rules       algorithms of sessions
client      a session at a metastore, whichever server keeps it, without a socket
"""
