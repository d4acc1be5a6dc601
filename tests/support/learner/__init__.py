"""Helpers of the learner's tests: small runs, commands and searches without a network."""
