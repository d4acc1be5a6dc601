"""Tests of `train/registry`."""
