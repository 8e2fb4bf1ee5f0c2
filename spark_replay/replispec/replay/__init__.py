"""Replay of captured traffic: from packets to frames, events, verdicts and a report.

In come captures (pcap, pcapng); out come findings, each with the frames that prove it, and tables in Parquet.
A replay claims nothing that it did not see: what rests on lost packets is *unknown*.

The rooms, each importing only those above it:

    capture     the container: where each packet lies in the file
    tcp         bytes of each direction in sequence space, holes included
    frames      found, read by generated codecs, written as a table
    pairing     answers with their requests, in the order that the bytes tell
    events      what a frame says, and which broker set it is about
    machines    machines of the specification, stepped over what was seen
    judges      invariants of the specification, evaluated over events
    report      what came of it, for people
    engines     one process or Spark: who calls it all
    watch       captures that are still being written

A *loss* is a message that was acknowledged and is not in the log of a later master.
Begin with `engines/run.py`, then `engines/decoding.py` down to `tcp/flows.py`, then `judges/streams.py`.
"""
