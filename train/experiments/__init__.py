"""Experiments: each file trains or plays, measures, and prints one result.

G games, P players, T plies, N positions, A slots, H W cells, K symmetries.
"""
