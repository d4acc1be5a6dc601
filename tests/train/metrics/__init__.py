"""Tests of `train/metrics`."""
