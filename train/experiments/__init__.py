"""Experiments: scripts over the public interface, `python -m train.experiments.NAME`, one a result;
`lab` keeps what they have finished, and `pages` renders the tables of docs/.

G games, P players, T plies, N positions, A slots, H W cells, K symmetries.
"""
