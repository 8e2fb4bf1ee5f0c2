"""What the suite knows of ZooKeeper's client protocol: one kind of subject, its names, its frames."""
