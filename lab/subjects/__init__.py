"""What can be started: by name and release, with what it takes to have it, its programs, and its kinds."""
