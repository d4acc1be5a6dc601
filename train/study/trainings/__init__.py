"""The topics of `study` that train networks of their own."""
