"""The words of partitions in a report."""
