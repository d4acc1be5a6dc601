"""Faces that other libraries know; each needs an extra."""
