"""Players without weights: random, greedy, heuristics."""
