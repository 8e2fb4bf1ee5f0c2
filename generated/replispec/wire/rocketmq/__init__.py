"""The wire protocol of rocketmq, from its specification."""
