"""Our roles among Apache Kafka's own programs, and other people's clients."""
