"""Benchmarks: how fast the game, the search, self-play, the learner, matches and engines are.

    python -m train bench                    the game, the search, self-play and the learner
    python -m train.bench.inference_time     the networks of a paper's table
    python -m train.bench.accelerator        all that needs an accelerator, in ten minutes

Each command explains its options with `--help`. Run it with nothing else on the machine.
"""
