"""Tests of `wallgo_jax/drawing`."""
