"""What the suite knows of Kafka's replication: brokers, controllers, and the store that both stand beside."""
