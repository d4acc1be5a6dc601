"""A position or a game in words and plain data, on the host."""
