"""Losses and the learner's step; the only folder that imports optax."""
