"""Games that a player is asked about move by move: sessions, searched together, that keep trees."""
