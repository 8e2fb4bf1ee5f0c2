"""The wire protocol of rocketmq, made from the specification."""
