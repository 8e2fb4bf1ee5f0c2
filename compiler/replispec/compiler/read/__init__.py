"""From files of the specification to the model: one reader for each kind of file."""
