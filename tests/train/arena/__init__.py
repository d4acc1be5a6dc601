"""Tests of `train/arena`."""
