"""What a controller knows and decides, without connections: partitions, brokers, commands."""
