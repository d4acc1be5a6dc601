"""Playing at a board: tables, machine opponents, the local page, the terminal game, the widget."""
