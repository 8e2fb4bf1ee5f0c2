"""A broker of Kafka's replication."""
