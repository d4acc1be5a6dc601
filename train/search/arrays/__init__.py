"""Arrays of a search tree: how each platform reads and writes them, and positions as words."""
