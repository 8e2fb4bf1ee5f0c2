"""The one command line. It may import every room, and does so only when a command runs."""
