"""What the records of a metastore make: the tree, its sessions, its watches. No bytes, no clock."""
