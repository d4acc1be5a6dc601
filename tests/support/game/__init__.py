"""Helpers of the game's tests: positions, replays and comparisons with the slow referee."""
