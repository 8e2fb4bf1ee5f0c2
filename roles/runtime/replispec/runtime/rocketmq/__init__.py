"""What all roles of RocketMQ share, without a socket.

    framing      bytes -> remoting commands
    remoting     the asking side (`Calls`) and the answering side (`RequestServer`) of remoting commands
    log          commit log, epoch file, queue index, and the group commit that brings them to the disk
    replication  the master's side (`HaMaster`, one `Feed` for each replica) and the replica's (`HaReplica`)
    membership   identity, registration, the active controller, name servers
    rules        the algorithms that guards call, decided by vectors of the specification

Words: a *SyncStateSet* holds the brokers that must have a message before it is confirmed; the *confirm
offset* is the end of what all of them have. An *epoch* counts masters: each begins one, at an offset of
the log. An *opaque* is the number by which remoting pairs an answer with its request.
"""
