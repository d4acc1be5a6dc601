"""Tests of `wallgo_jax/adapters`."""
