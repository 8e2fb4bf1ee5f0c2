"""The wire protocol of zookeeper, from its specification."""
