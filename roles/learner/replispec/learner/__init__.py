"""The learner: it copies a commit log, takes no part in anything, and gives confirmed messages on."""
