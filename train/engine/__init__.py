"""Analysis sessions: games of other programs, searched together, each with its own tree."""
