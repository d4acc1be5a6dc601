"""Positions and games as SVG, and as the pages and pixels made of it."""
