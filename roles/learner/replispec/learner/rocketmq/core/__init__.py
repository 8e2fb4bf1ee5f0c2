"""The decisions of a learner: whom it copies, and what it exports."""
