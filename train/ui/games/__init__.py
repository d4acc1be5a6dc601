"""A game at a board: seats, clocks, variations, the machine's levels, games as files."""
