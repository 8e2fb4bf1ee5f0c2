"""A controller of Kafka's replication: it decides who leads the partitions of a cluster.

In comes what the store holds, a ZooKeeper or ours, and what brokers answer; out go changes of the store, each
by version and only while this is the controller, and commands to brokers. Begin with `node.py`. `office.py`
is the way into the office, `reign.py` one time in it: `seeing_store.py` reads and watches, `leaders.py`
writes who leads, `moves.py` and `deletions.py` move partitions and delete topics. `links.py` has a connection
to each broker. `core/` knows no connection.
"""
