"""Real implementations, started and stopped for the suite by the scripts beside this file."""
