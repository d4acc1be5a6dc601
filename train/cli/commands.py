"""All commands, by the names that users type."""

from train.cli.bench import Bench
from train.cli.config import Config
from train.cli.export import Export
from train.cli.games.accuracy import Accuracy, Late
from train.cli.games.engine import Engine
from train.cli.games.levels import Levels
from train.cli.games.match import Gate, Match
from train.cli.games.play import Play
from train.cli.games.puzzles import Puzzles
from train.cli.games.ratings import Elo
from train.cli.games.review import Calibrate, Review
from train.cli.games.tournament import Tournament
from train.cli.network import Attention, Corridors, Describe, Ownership, Probe
from train.cli.run import Ablate, Curves, Fit, Run
from train.cli.study import Study
from wallgo_jax.cli.parsing import Program

PROGRAM = Program(
    name="python -m train",
    description="Train WallGo players and measure them.",
    groups={
        "train": {"run": Run, "fit": Fit, "config": Config},
        "measure": {
            "ablate": Ablate,
            "study": Study,
            "curves": Curves,
            "match": Match,
            "elo": Elo,
            "levels": Levels,
            "tournament": Tournament,
            "gate": Gate,
            "accuracy": Accuracy,
            "late": Late,
        },
        "review games": {"review": Review, "puzzles": Puzzles, "calibrate": Calibrate},
        "look into a network": {
            "describe": Describe,
            "attention": Attention,
            "ownership": Ownership,
            "corridors": Corridors,
            "probe": Probe,
        },
        "sit down": {"play": Play},
        "pass on and time": {"export": Export, "engine": Engine, "bench": Bench},
    },
    examples=(
        "run",
        "run configs/cpu.toml --seed 1 --network.width 64",
        "run --resume runs/cpu",
        "match search:runs/quickstart@64 wjx --games 400",
    ),
)
CONFIGURED = ("run", "fit", "config", "bench")
"""Commands that read a config, and so take `--some.key value`."""
