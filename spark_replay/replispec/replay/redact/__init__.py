"""Captures that can be shown: every name, address and body replaced, every length, number and verdict kept.

In: a capture and a key. Out: a capture of the same packets. Begin with `run`. A *pseudonym* is what a name
or an address becomes: of the same length, always the same under one key. Nothing is passed through: what is
written was decoded and replaced, or is zero (`images`).
"""
