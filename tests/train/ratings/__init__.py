"""Tests of `train/ratings`."""
