"""Games of three and four players: who sits where, how they are played, scored and rated."""
