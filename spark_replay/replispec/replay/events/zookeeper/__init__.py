"""What connections with a store tell of its nodes."""
