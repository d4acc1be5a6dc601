"""Values of a game, for one player."""

WIN, DRAW, LOSS = 1, 0, -1
