"""Games between players: matches, tournaments, ratings."""
