"""All commands, by the names that users type."""

from typing import Annotated

import tyro

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

Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Fit, tyro.conf.subcommand("fit")]
    | Annotated[Ablate, tyro.conf.subcommand("ablate")]
    | Annotated[Study, tyro.conf.subcommand("study")]
    | Annotated[Config, tyro.conf.subcommand("config")]
    | Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Accuracy, tyro.conf.subcommand("accuracy")]
    | Annotated[Late, tyro.conf.subcommand("late")]
    | Annotated[Elo, tyro.conf.subcommand("elo")]
    | Annotated[Levels, tyro.conf.subcommand("levels")]
    | Annotated[Tournament, tyro.conf.subcommand("tournament")]
    | Annotated[Gate, tyro.conf.subcommand("gate")]
    | Annotated[Curves, tyro.conf.subcommand("curves")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Describe, tyro.conf.subcommand("describe")]
    | Annotated[Attention, tyro.conf.subcommand("attention")]
    | Annotated[Ownership, tyro.conf.subcommand("ownership")]
    | Annotated[Corridors, tyro.conf.subcommand("corridors")]
    | Annotated[Probe, tyro.conf.subcommand("probe")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Engine, tyro.conf.subcommand("engine")]
    | Annotated[Review, tyro.conf.subcommand("review")]
    | Annotated[Calibrate, tyro.conf.subcommand("calibrate")]
    | Annotated[Puzzles, tyro.conf.subcommand("puzzles")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)
PROGRAM = Program(
    name="python -m train",
    description="Train WallGo players and measure them.",
    commands=Command,
    groups={
        "train": ("run", "fit", "config"),
        "measure": (
            "ablate",
            "study",
            "curves",
            "match",
            "elo",
            "levels",
            "tournament",
            "gate",
            "accuracy",
            "late",
        ),
        "review games": ("review", "puzzles", "calibrate"),
        "look into a network": ("describe", "attention", "ownership", "corridors", "probe"),
        "sit down": ("play",),
        "pass on and time": ("export", "engine", "bench"),
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
