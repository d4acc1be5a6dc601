"""A Gumbel AlphaZero trainer for WallGo that runs end to end on the accelerator.

The names below are the Python interface (`docs/api.md`): configs, runs, players, matches. They
live in `train.api` and are imported when they are first used, so that this package alone loads no
JAX. `docs/architecture.md` has the map of all folders.

The learner's libraries are an extra of the package. Where they are missing, importing this raises
an ImportError that says what to install; a command says so and leaves with exit code 2.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.api.configs import make_config, use_functions
    from train.api.games import match, seated_match, seated_tournament, series, tournament
    from train.api.measures import accuracy, attention, describe, ownership
    from train.api.players import Player, make_player
    from train.api.ratings import elo
    from train.api.reviews import Review, load_game, review_game
    from train.api.runs import ReplayStatistics, Run, resume, run, start, watch
    from train.api.states import step
    from train.api.whole_games import SelfPlay, selfplay
    from train.config import RunConfig
    from train.learning.losses import TrainingTargets
    from train.network import Output, slot_logits
    from train.runtime.errors import UsageError
    from train.search.evaluator import Evaluation
    from train.search.report import SearchReport
    from train.ui.notebook import play

__all__ = [
    "Evaluation",
    "Output",
    "Player",
    "ReplayStatistics",
    "Review",
    "Run",
    "RunConfig",
    "SearchReport",
    "SelfPlay",
    "TrainingTargets",
    "UsageError",
    "accuracy",
    "attention",
    "describe",
    "elo",
    "load_game",
    "make_config",
    "make_player",
    "match",
    "ownership",
    "play",
    "resume",
    "review_game",
    "run",
    "seated_match",
    "seated_tournament",
    "selfplay",
    "series",
    "slot_logits",
    "start",
    "step",
    "tournament",
    "use_functions",
    "watch",
]

_FILES = {
    "configs": ("make_config", "use_functions"),
    "games": ("match", "seated_match", "seated_tournament", "series", "tournament"),
    "measures": ("accuracy", "attention", "describe", "ownership"),
    "players": ("Player", "make_player"),
    "ratings": ("elo",),
    "reviews": ("Review", "load_game", "review_game"),
    "runs": ("ReplayStatistics", "Run", "resume", "run", "start", "watch"),
    "whole_games": ("SelfPlay", "selfplay"),
    "states": ("step",),
}
_OTHERS = {
    "Evaluation": "search.evaluator",
    "Output": "network",
    "RunConfig": "config",
    "SearchReport": "search.report",
    "TrainingTargets": "learning.losses",
    "UsageError": "runtime.errors",
    "play": "ui.notebook",
    "slot_logits": "network",
}
_PLACES = {name: f"api.{file}" for file, names in _FILES.items() for name in names} | _OTHERS


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _PLACES[name].startswith("api."):
        importlib.import_module(f"{__name__}.runtime.devices").set_up()
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)


_LIBRARIES = ("flax matplotlib mctx optax orbax pydantic scipy tensorboardX tensorstore").split()
_USAGE_ERROR = 2


def _require_learner() -> None:
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if not missing:
        return
    message = f"train needs {', '.join(missing)}: pip install 'wallgo-jax[train]'"
    # `-m` is what stands there while Python looks for the module of `python -m train`.
    if Path(sys.argv[0]).stem in ("-m", "wallgo-train"):
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(_USAGE_ERROR)
    raise ImportError(message)


_require_learner()
