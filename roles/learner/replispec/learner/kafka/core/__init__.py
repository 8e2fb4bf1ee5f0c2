"""The parts of a learner: whom it reads, and what it exports."""
