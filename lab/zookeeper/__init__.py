"""What the lab knows of metastores: Apache ZooKeeper's, and ours."""
