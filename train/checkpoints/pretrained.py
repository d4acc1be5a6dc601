"""Models that come with the package, by name: folders of `export` in train/models.

train/models/NAME/README.md is the card in words.
"""

from pathlib import Path
from typing import Any

from train.checkpoints import exported
from train.config import RunConfig
from train.runtime.errors import UsageError
from wallgo_jax.formats.near_names import did_you_mean
from wallgo_jax.game.rules import Rules

FOLDER = Path(__file__).parents[1] / "models"


def models() -> list[str]:
    """Names of all models."""
    entries = FOLDER.iterdir() if FOLDER.is_dir() else []
    return sorted(entry.name for entry in entries if exported.is_model(entry))


def model_for(rules: Rules) -> str | None:
    """Name of the model that has learned these rules, the newest of several; None for none."""
    return next((name for name in models() if rules in read_config(name).learned), None)


def folder_of(name: str) -> Path:
    """The folder of a model.

    Raises:
      UsageError: there is no such model.
    """
    known = models()
    if name not in known:
        hint = f"{did_you_mean(name, known)}; known models: {', '.join(known) or 'none'}"
        raise UsageError(f"pretrained model {name!r}: unknown{hint}")
    return FOLDER / name


def read_card(name: str) -> dict[str, Any]:
    """A model's card; errors as those of `folder_of` and of `train.checkpoints.exported`."""
    return exported.read_card(folder_of(name))


def read_config(name: str) -> RunConfig:
    """The config of the run that a model is from; errors as `read_card`."""
    return exported.read_config(folder_of(name))


def name_of(folder: Path) -> str | None:
    """The player's name of a folder among the package's models; None for one that lies
    elsewhere."""
    is_shipped = folder.resolve().parent == FOLDER.resolve()
    return f"pretrained:{folder.name}" if is_shipped else None
