"""Playing at a board: tables, machine opponents, the local web page and the terminal game."""
