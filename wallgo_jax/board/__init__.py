"""Geometry of a square grid: cells, edges, sides, bitboards, floods; it knows no rules."""
