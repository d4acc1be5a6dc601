"""The public Python interface, whose names `train` shows (docs/api.md)."""
