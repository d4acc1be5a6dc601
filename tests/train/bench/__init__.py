"""Tests of `train/bench`."""
