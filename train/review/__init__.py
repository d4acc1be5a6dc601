"""Reviews of games: searched positions, graded moves, calibrated win chances, puzzles."""
