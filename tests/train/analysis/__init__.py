"""Tests of `train/analysis`."""
