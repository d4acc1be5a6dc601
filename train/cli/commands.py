"""All commands, by the names that users type."""

import re

from train.cli.accuracy import Accuracy
from train.cli.bench import Bench
from train.cli.config import Config
from train.cli.engine import Engine
from train.cli.experiment import EXPERIMENTS, Experiment
from train.cli.export import Export
from train.cli.games import Elo, Match, Tournament
from train.cli.inspect import INSPECT, Inspect
from train.cli.play import Play
from train.cli.puzzles import Puzzles
from train.cli.review import Review
from train.cli.run import Curves, Fit, Run
from wallgo_jax.cli.parsing import Program

PROGRAM = Program(
    name="python -m train",
    description="Train WallGo players and measure them.",
    groups={
        "train": {"run": Run, "fit": Fit, "config": Config},
        "measure": {
            "experiment": Experiment,
            "curves": Curves,
            "match": Match,
            "elo": Elo,
            "tournament": Tournament,
            "accuracy": Accuracy,
        },
        "review games": {"review": Review, "puzzles": Puzzles},
        "look into a network": {"inspect": Inspect},
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
GROUPS = {"inspect": INSPECT, "experiment": EXPERIMENTS}
"""Commands whose next word chooses one of their own."""
OPEN_GROUPS = ("experiment",)
"""Those that are a command themselves where the next word chooses none."""
OLD_NAMES = {
    "study": ("experiment",),
    "ablate": ("experiment", "ablation"),
    "levels": ("experiment", "levels"),
    "calibrate": ("experiment", "calibrate"),
    "late": ("accuracy",),
    "gate": ("match",),
    **{name: ("inspect", name) for name in INSPECT.commands},
}
"""Names of commands before they became fewer, with those that do the same now."""
_AGAINST = "--against="
_FLAGS = ("-h", "--help", "--transfer", "--players-place")


def renamed(words: list[str]) -> list[str]:
    """The words of a command line with the new name of an old command, and what its options were:
    the files of `late` follow `--prove`, and `gate` named its opponent by `--against`."""
    if not words or words[0] not in OLD_NAMES:
        return words
    old, *rest = words
    if old in ("late", "gate"):
        names, options = _split(rest)
        if old == "late":
            options = [re.sub("^--out=", "--late=", option) for option in options]
            rest = [*options, *(["--prove", *names] if names else [])]
        else:
            names += [each.removeprefix(_AGAINST) for each in options if each.startswith(_AGAINST)]
            options = [option for option in options if not option.startswith(_AGAINST)]
            rest = [*names, "--gate", *options]
    return [*OLD_NAMES[old], *rest]


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words that are no options, and the options, each with its value as one word."""
    names, options, rest = list[str](), list[str](), list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            names.append(word)
        elif "=" in word or word in _FLAGS or not rest:
            options.append(word)
        else:
            options.append(f"{word}={rest.pop(0)}")
    return names, options
