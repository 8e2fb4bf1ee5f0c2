"""What the command says of ZooKeeper."""
