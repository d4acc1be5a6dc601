"""Tests of `train/loop`."""
