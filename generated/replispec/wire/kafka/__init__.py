"""The wire protocol of kafka, made from the specification."""
