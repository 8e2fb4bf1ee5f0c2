"""What generated code, roles and tools stand on. Nothing in here decides what only a protocol can decide.

Parts, from below; each imports only what stands above it in this list:

    primitives      what generated code imports: readers and writers of bytes, text and JSON, errors, and
                    the engines that step a machine and evaluate an invariant
    documents       our own protobuf messages, read strictly
    families        which families of protocols there are, and where a room keeps what belongs to one
    storage         what a role keeps: files, a journal, a text file; writes are operations, given as values
    world           what a role and its surroundings exchange: events in, effects out
    configuration   a properties file, read into the options of one role
    net             carries out effects on sockets, clock and disk (trio)
    sim             carries out the same effects in memory, from one seed, with crashes and cut connections
    FAMILY          what all roles of one family share: framing, remoting, log, replication, membership, rules

Words: a *node* is one role of a process, a pure object: `receive(event)` returns effects, `deadline_ms()`
says when it wants a tick. A *shell* (`*_shell.py`) performs effects and decides nothing. A *core* is a part
of a node. A *seam* is the one module that imports a library that may be exchanged.

Begin with `world/node.py`, `world/events.py` and `world/effects.py`, 250 lines together, then
`primitives/machines.py`. `net/node_shell.py` and `sim/world.py` are the two surroundings of a node.
"""
