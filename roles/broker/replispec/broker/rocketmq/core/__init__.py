"""The decisions of a broker: its role, its topics, its clients, and what it answers."""
