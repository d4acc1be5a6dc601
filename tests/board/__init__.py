"""Tests of `wallgo_jax/board`."""
