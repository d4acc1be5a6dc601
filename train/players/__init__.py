"""Players: random, greedy, distance heuristics, and those that play with a network."""
