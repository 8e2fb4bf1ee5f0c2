"""From the model to files: one folder for each target. An emitter looks at the model alone."""
