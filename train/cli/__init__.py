"""The commands of `python -m train`, one file a group.

A file imports what its commands need when they run, so that `--help` answers at once.
"""
