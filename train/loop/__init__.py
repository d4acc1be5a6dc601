"""A run: iterations, evaluation, run directory, supervised learning."""
