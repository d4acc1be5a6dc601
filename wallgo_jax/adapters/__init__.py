"""Faces that other libraries know, each behind an extra of its own."""
