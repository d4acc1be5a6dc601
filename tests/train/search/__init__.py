"""Tests of `train/search`."""
