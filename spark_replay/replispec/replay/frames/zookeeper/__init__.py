"""Streams between clients and servers of ZooKeeper."""
