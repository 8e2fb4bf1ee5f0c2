"""The wire protocol of raft, from its specification."""
