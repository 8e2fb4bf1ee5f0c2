"""What a frame says, and which broker set it is about.

`observe` makes `Observation`s of whole connections; the folder of a family tells what its frames claim,
joins names and addresses to groups, and makes the streams that invariants speak about.
"""
