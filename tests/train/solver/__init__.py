"""Tests of `train/solver`."""
