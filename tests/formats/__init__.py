"""Tests of `wallgo_jax/formats`."""
