"""Replay of captured traffic: from packets to frames, events, verdicts and a report.

In come captures (pcap, pcapng); out come findings, each with the frames that prove it, and tables in Parquet.
A replay claims nothing that it did not see: what rests on lost packets is *unknown*.

    capture*, packets, rotation            the container: where each TCP payload lies in the file
    flows, sides, pieces, space            bytes of each direction in sequence space, holes included
    classify, anchors, framing, readers    frames: found, read by generated codecs, written as a table
    pairing, commands, replication         what a frame says, as `Observation`s; answers with their requests
    groups, facts, decisions               which broker set an observation is about, and what is claimed of it
    walks, *_walks                         machines of the specification, stepped over what was seen
    stream_events, judge                   invariants of the specification, evaluated over events
    results, run, summary, report          what came of it, for programs and for people

Two engines call the same functions: `engine_local` in one process, `engine_spark` on Spark, where a capture
is cut into *splits* that are decoded alone (`split`) and put together (`stitch`). Both give the same rows.

Words: a *piece* is a run of bytes that arrived, a *hole* one that did not; an *anchor* is a place after a
hole where reading can start again. A *walk* steps a machine over observed events. A *loss* is a message that
was acknowledged and is not in the log of a later master.

Begin with `run.py`, then `local.py` down to `flows.py`, then `judge.py`.
"""
