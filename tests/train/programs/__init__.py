"""Tests of `train/programs`."""
