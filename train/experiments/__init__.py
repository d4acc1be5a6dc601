"""Experiments: `report(work)` of each file that `catalogue` names makes the page of one result,
which begins with the file's docstring; the other files help them.

G games, P players, T plies, N positions, A slots, H W cells, K symmetries.
"""
