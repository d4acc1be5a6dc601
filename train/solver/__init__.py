"""Solves small boards exactly: by tables, by alpha-beta search, by proof numbers up to 5x5."""
