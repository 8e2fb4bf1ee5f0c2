"""The role metastore: a tree of small nodes that sessions watch, kept by a log.

In come the bytes of clients, out go answers, notifications and records for the log. Begin with the module
`node` of a family, the role; its `core` is what the records make, without bytes, sockets or disks;
`consensus` is how the log is agreed on.
"""
