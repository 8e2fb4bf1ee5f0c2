"""What programs read of the specification without its folder: data, one entry a line."""
