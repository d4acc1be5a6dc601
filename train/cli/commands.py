"""All commands, by the names that users type."""

from train.cli.bench import Bench
from train.cli.config import Config
from train.cli.experiment import Experiment
from train.cli.export import Export
from train.cli.games.accuracy import Accuracy
from train.cli.games.engine import Engine
from train.cli.games.levels import Levels
from train.cli.games.match import Gate, Match
from train.cli.games.play import Play
from train.cli.games.puzzles import Puzzles
from train.cli.games.ratings import Elo
from train.cli.games.review import Calibrate, Review
from train.cli.games.tournament import Tournament
from train.cli.inspect import INSPECT, Inspect
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
            "levels": Levels,
            "tournament": Tournament,
            "gate": Gate,
            "accuracy": Accuracy,
        },
        "review games": {"review": Review, "puzzles": Puzzles, "calibrate": Calibrate},
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
GROUPS = {"inspect": INSPECT}
"""Commands whose next word chooses one of their own."""
OLD_NAMES = {
    "study": ("experiment",),
    "ablate": ("experiment", "ablation"),
    "late": ("accuracy",),
    **{name: ("inspect", name) for name in INSPECT.commands},
}
"""Names of commands before they became fewer, with those that do the same now."""


def renamed(words: list[str]) -> list[str]:
    """The words of a command line with the new name of an old command."""
    if not words or words[0] not in OLD_NAMES:
        return words
    new, rest = OLD_NAMES[words[0]], words[1:]
    return [*new, *(_proving(rest) if words[0] == "late" else rest)]


def _proving(words: list[str]) -> list[str]:
    """The options of `accuracy` that do what those of `late` did: its files follow `--prove`, and
    every option of it had one value."""
    files, others, rest = [], [], list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            files.append(word)
            continue
        others.append("--late" + word[5:] if word.partition("=")[0] == "--out" else word)
        if "=" not in word and rest and word not in ("-h", "--help"):
            others.append(rest.pop(0))
    return [*others, *(["--prove", *files] if files else [])]
