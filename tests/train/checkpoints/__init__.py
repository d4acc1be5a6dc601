"""Tests of `train/checkpoints`."""
