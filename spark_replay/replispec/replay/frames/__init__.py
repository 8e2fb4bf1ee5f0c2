"""Frames: found in the bytes of a direction, read by generated codecs, written as a table.

`classify` tells what a direction speaks, `anchors` finds a frame after a hole (an *anchor* is a place where
reading can start again), `framing` reads them all, `tables` makes columns of them. What a family's frames
are stands in the folder of its name: its readers and columns, behind one object (see `family`).
"""
