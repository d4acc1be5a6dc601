"""A game at a table: seats, clocks, variations, the machine's levels, games as files."""
