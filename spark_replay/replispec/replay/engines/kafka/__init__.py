"""How captures are judged in which brokers speak."""
