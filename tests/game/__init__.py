"""Tests of `wallgo_jax/game`."""
