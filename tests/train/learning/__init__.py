"""Tests of `train/learning`."""
