"""Tests of `train/runtime`."""
