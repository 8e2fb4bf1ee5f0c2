"""The learner of Kafka's family: it reads what is committed in topics, and exports it.

`node.LogReaderNode` owns the parts: `core/finding` asks brokers who leads, `core/reading` reads partitions of
one leader as nobody's replica (id -1), `core/export` writes records and how far it is.
"""
