"""Benchmarks: how fast the game, the search, self-play, the learner, matches and engines are.

    python -m train bench                 the game, the search, self-play and the learner
    python -m train.bench.scripts.match_overhead  a match of two search players beside self-play
    python -m train.bench.scripts.inference_time  the networks of the ResTNet paper's Table 1

Each command explains its options with `--help`. Run it with nothing else on the machine.
"""
