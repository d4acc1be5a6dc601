"""How fast the game, the search, self-play and the learner are."""
