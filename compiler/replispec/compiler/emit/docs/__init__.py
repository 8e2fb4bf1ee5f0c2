"""The Markdown pages of a family."""
