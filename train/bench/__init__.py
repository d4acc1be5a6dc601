"""Benchmarks: how fast the game, the search, self-play, the learner, matches and engines are.

`python -m train bench --help` explains the command. Run it with nothing else on the machine.
"""
