"""The programs that are timed."""
