"""Which answer belongs to which request, by the order that the bytes of a connection tell."""
