"""Tests of `train/cli`."""
