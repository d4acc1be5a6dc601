"""Positions and games as SVG, and the pages and pixels made of it."""
