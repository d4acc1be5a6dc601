"""The value of a solved position for the player to move, or of a ply for the player who made it."""

WIN, DRAW, LOSS = 1, 0, -1
