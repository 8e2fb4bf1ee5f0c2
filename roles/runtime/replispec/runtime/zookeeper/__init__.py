"""Algorithms of ZooKeeper that its machines call as `rules`."""
