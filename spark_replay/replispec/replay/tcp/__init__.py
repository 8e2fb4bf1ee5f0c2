"""From packets to the bytes of each direction of each connection, holes included.

    layers, network, tunnels       what is around a TCP segment is opened
    fragments, fragment_rows       fragments of IP packets are joined
    checksums, senders, ground     what the wire vouches for
    packets, rotation              one row a TCP packet, of one file or of several
    flows, sides, copies, pieces   which packets belong together, and which copy of a byte counts
    numbers                        numbers of 32 bits, and the positions that they stand for
    directions, space              what a reader of frames is given
    rewritten                      a packet under other names

A *piece* is a run of bytes that arrived, a *hole* one that did not.
"""
