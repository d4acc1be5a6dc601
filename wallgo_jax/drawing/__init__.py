"""Pictures of positions and games, as SVG and what is made from it."""
