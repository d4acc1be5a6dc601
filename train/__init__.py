"""A Gumbel AlphaZero trainer for WallGo that runs end to end on the accelerator.

The names below are the Python interface (`docs/api.md`): configs, runs, players, and the verbs that
the command line has, too. They are imported when they are first used, so that this package alone
loads no JAX. `docs/architecture.md` has the map of all folders.

The learner's libraries are an extra of the package. Where they are missing, importing this raises
an ImportError that says what to install; a command says so and leaves with exit code 2.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from train.analysis.accuracy import Accuracy as Accuracy
    from train.analysis.late_proofs import Proofs as Proofs
    from train.api.configs import make_config as make_config
    from train.api.configs import use_functions as use_functions
    from train.api.curves import bench_speed as bench_speed
    from train.api.curves import curves as curves
    from train.api.games import match as match
    from train.api.games import series as series
    from train.api.games import tournament as tournament
    from train.api.measures import accuracy as accuracy
    from train.api.measures import attention as attention
    from train.api.measures import describe as describe
    from train.api.measures import ownership as ownership
    from train.api.measures import prove as prove
    from train.api.models import export as export
    from train.api.models import levels as levels
    from train.api.players import Player as Player
    from train.api.players import make_player as make_player
    from train.api.puzzles import check_puzzles as check_puzzles
    from train.api.puzzles import find_puzzles as find_puzzles
    from train.api.ratings import elo as elo
    from train.api.reviews import calibrate as calibrate
    from train.api.reviews import load_game as load_game
    from train.api.reviews import review_game as review_game
    from train.api.runs import ReplayStatistics as ReplayStatistics
    from train.api.runs import Run as Run
    from train.api.runs import fit as fit
    from train.api.runs import resume as resume
    from train.api.runs import run as run
    from train.api.runs import start as start
    from train.api.runs import watch as watch
    from train.api.serving import serve_engine as serve_engine
    from train.api.serving import serve_page as serve_page
    from train.api.states import legal_slots as legal_slots
    from train.api.states import step as step
    from train.api.whole_games import SelfPlay as SelfPlay
    from train.api.whole_games import selfplay as selfplay
    from train.arena.meetings import TournamentResult as TournamentResult
    from train.arena.recorded import Series as Series
    from train.arena.result import MatchResult as MatchResult
    from train.config import RunConfig as RunConfig
    from train.experiments.compare import ablation as ablation
    from train.experiments.speedrun import speedrun as speedrun
    from train.learning.losses import TrainingTargets as TrainingTargets
    from train.network import Output as Output
    from train.network import slot_logits as slot_logits
    from train.ratings.rated import RatedPool as RatedPool
    from train.review.page import Review as Review
    from train.review.reliability import Reliability as Reliability
    from train.runtime.errors import UsageError as UsageError
    from train.search.evaluator import Evaluation as Evaluation
    from train.search.report import SearchReport as SearchReport
    from train.ui.notebook import play as play

_NAMES = {
    "analysis.accuracy": "Accuracy",
    "analysis.late_proofs": "Proofs",
    "api.configs": "make_config use_functions",
    "api.curves": "bench_speed curves",
    "api.games": "match series tournament",
    "api.measures": "accuracy attention describe ownership prove",
    "api.models": "export levels",
    "api.players": "Player make_player",
    "api.puzzles": "check_puzzles find_puzzles",
    "api.ratings": "elo",
    "api.reviews": "calibrate load_game review_game",
    "api.runs": "ReplayStatistics Run fit resume run start watch",
    "api.serving": "serve_engine serve_page",
    "api.states": "legal_slots step",
    "api.whole_games": "SelfPlay selfplay",
    "arena.meetings": "TournamentResult",
    "arena.recorded": "Series",
    "arena.result": "MatchResult",
    "config": "RunConfig",
    "experiments.compare": "ablation",
    "experiments.speedrun": "speedrun",
    "learning.losses": "TrainingTargets",
    "network": "Output slot_logits",
    "ratings.rated": "RatedPool",
    "review.page": "Review",
    "review.reliability": "Reliability",
    "runtime.errors": "UsageError",
    "search.evaluator": "Evaluation",
    "search.report": "SearchReport",
    "ui.notebook": "play",
}
"""The same names by their modules, for Python."""
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]: those that it reads above
_WITHOUT_DEVICES = ("config", "runtime.errors")


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _PLACES[name] not in _WITHOUT_DEVICES:
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
