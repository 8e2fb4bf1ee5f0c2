"""What the entry scripts of all targets share."""
