"""Games of pgx, played at random as WallGo is.

pgx: Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement
Learning" (2023). Needs the `bench` extra.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from train.bench.harness.play import Game
from train.bench.parts.games import with_public_face
from train.bench.parts.plain import PlainGame
from train.runtime.errors import UsageError

GAMES = {
    "pgx": "othello",
    "pgx-animal_shogi": "animal_shogi",
    "pgx-chess": "chess",
    "pgx-connect_four": "connect_four",
    "pgx-gardner_chess": "gardner_chess",
    "pgx-go_9x9": "go_9x9",
    "pgx-hex": "hex",
}
"""pgx's games by the name that asks for them; `pgx` is Othello."""


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


def plain_games(names: Sequence[str] = ("othello",)) -> list[PlainGame]:
    """Each game as pgx's documents play it at random, with pgx's own automatic reset.

    Raises:
      UsageError: pgx is not installed.
    """
    envs = [(name, *pgx_env(name)) for name in names]
    return [PlainGame(f"pgx {name}", env.init, step) for name, env, step in envs]


def pgx_env(name: str) -> tuple[Any, Callable[..., Any]]:
    """A game of pgx, and its step with pgx's own automatic reset: (state, action, key) -> state.

    Raises:
      UsageError: pgx is not installed.
    """
    pgx = _import_pgx()
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    return env, auto_reset(env.step, env.init)


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
