"""A metastore that clients of ZooKeeper take for one: the node, and what it is made of."""
