"""Solves small boards exactly: by tables on 3x3, by alpha-beta search up to 4x4."""
