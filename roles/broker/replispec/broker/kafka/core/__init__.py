"""What a broker knows and decides, without connections: its replicas, and where those of others are."""
