"""Tests of `train/network`."""
