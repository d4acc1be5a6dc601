"""Checkpoints, weights and shipped models on disk; the only folder that imports orbax."""
