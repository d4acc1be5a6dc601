"""Weights and runs on disk; the only folder that imports orbax."""
