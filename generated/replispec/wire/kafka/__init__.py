"""The wire protocol of kafka, from its specification."""
