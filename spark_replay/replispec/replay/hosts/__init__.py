"""Captures that were taken at several places at once, merged into one: `merging` is what others use.

`sightings` says which packet was seen where, `halves` which connections are one behind an address
translation, `clocks` how the clocks of the places differ, `copies` which packets are copies of others.
Nothing here judges: what comes out is a capture as one place that sees everything would have taken it.
"""
