"""Games of pgx, played at random as WallGo is.

pgx: Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement
Learning" (2023). Needs the `bench` extra.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from train.bench.harness.play import Game
from train.bench.parts.games import with_public_face
from train.runtime.errors import UsageError

GAMES = {"pgx": "othello", "pgx-chess": "chess", "pgx-hex": "hex", "pgx-go_9x9": "go_9x9"}
"""pgx's games by the name that asks for them.

`pgx` is Othello. Do not quote ratios to hex and go_9x9: one loop in one program, on several CPU
devices, runs their steps many times slower than a plain script that calls each step by itself.
"""


def peer_games(names: Sequence[str] = ("othello",)) -> list[Game]:
    """Each game twice: once reads only the mask, once the observation as well.

    Raises:
      UsageError: pgx is not installed.
    """
    pgx = _import_pgx()
    return [
        with_public_face(
            f"pgx {name}{', planes' if reads else ''}", env.init, env.step, reads_observation=reads
        )
        for name, env in ((name, pgx.make(name)) for name in names)
        for reads in (False, True)
    ]


def _import_pgx() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pgx's own imports warn
            import pgx
    except ImportError:
        raise UsageError(
            "bench: --against pgx needs pgx: pip install 'wallgo-jax[bench]'"
        ) from None
    return pgx
