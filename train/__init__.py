"""A Gumbel AlphaZero learner for WallGo that runs end to end on the accelerator.

[B] means boards in parallel. docs/architecture.md is the map of the folders.
"""
