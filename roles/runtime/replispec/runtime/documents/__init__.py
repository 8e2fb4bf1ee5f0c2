"""Our own protobuf messages, read strictly: `betterproto_seam`, `official_seam`, and what both stand on.

Nothing is imported here, so that who needs one runtime of protobuf does not load the other.
"""
