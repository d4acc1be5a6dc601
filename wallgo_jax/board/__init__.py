"""Floor 1: the geometry of a square grid - cells, sides, bitboards, floods. It knows no rules."""
