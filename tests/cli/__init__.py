"""Tests of `wallgo_jax/cli`."""
