"""Games of pgx, to be played at random as WallGo is.

pgx: Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement
Learning" (2023). Needs the `bench` extra.
"""

import warnings
from typing import Any

from train.bench.harness.play import Game
from train.bench.parts.games import with_public_face
from train.runtime.errors import UsageError

GAMES = ("othello", "hex", "go_9x9", "chess")


def rival_games(names: tuple[str, ...] = GAMES) -> list[Game]:
    """Each game twice: mask alone read, and observation read as well.

    Raises:
      UsageError: pgx is not installed.
    """
    return [
        with_public_face(f"pgx {name}{', planes' if reads else ''}", env.init, env.step, **option)
        for name, env in _envs(names)
        for reads in (False, True)
        for option in ({"reads_observation": reads},)
    ]


def version() -> str:
    """pgx's.

    Raises:
      UsageError: pgx is not installed.
    """
    return _pgx().__version__


def _envs(names: tuple[str, ...]) -> list[tuple[str, Any]]:
    pgx = _pgx()
    return [(name, pgx.make(name)) for name in names]


def _pgx() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what pgx itself imports
            import pgx
    except ImportError:
        raise UsageError(
            "bench: --against pgx needs pgx: pip install 'wallgo-jax[bench]'"
        ) from None
    return pgx
