"""Puzzles: positions in which one move alone wins, found in games, kept in files, checked."""
