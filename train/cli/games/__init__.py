"""Commands about games: matches, ratings, play, reviews, puzzles, the engine."""
