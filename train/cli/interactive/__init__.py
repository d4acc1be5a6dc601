"""The commands that people sit in front of."""
