"""The name server: who holds which topic, as brokers said last."""
