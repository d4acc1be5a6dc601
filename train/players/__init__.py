"""One `Player`: random, greedy, heuristics, networks, searches, other programs, by their names."""
