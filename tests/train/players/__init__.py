"""Tests of `train/players`."""
