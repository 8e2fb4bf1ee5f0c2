"""What roles share that keep their records in a metastore, without a socket.

client      a session at a metastore, whichever server keeps it
"""
