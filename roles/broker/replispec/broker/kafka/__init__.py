"""A broker of Kafka's replication: logs of partitions, which it leads as the controller says.

In come requests of clients and followers, commands of the controller, and what the store holds; out go
answers, writes, and changes of ISRs in the store. Begin with `node.py`. `connections.py` has whoever asks,
`commands.py` does what the controller says, `produces.py`, `fetches.py` and `questions.py` serve, `isr.py`
changes ISRs, `registering.py` keeps the broker known, `keeping.py` brings logs to the disk. `core/` knows no
connection. `fetching.py` has what others lead copied by `follower/`.
"""
