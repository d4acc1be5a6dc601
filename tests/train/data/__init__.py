"""Tests of `train/data`."""
