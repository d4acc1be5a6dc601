"""Models that come with the package, by name: folders of `export` in train/models.

train/models/NAME/README.md is the card in words.
"""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from train.checkpoints import exported
from train.config import RunConfig
from train.network import Variables
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules


def models() -> list[str]:
    """Names of all models."""
    folder = _folder()
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(entry.name for entry in found if exported.is_model(entry))


def model_for(rules: Rules) -> str | None:
    """Name of the model that has learned these rules, the newest of several; None for none."""
    return next((name for name in models() if rules in read_config(name).learned), None)


def read_card(name: str) -> dict[str, Any]:
    """A model's card.

    Raises:
      UsageError: there is no such model, or it is of another version of the game.
    """
    return exported.read_card(_folder_of(name), where=_where(name))


def read_config(name: str) -> RunConfig:
    """The config of the run that a model is from."""
    return exported.read_config(_folder_of(name), where=_where(name))


def read_weights(name: str, like: Variables) -> Variables:
    """A model's weights; `like` gives their shapes.

    Raises:
      UsageError: they do not have the checksum of the card.
    """
    return exported.read_weights(_folder_of(name), like, where=_where(name))


def folder_of(name: str) -> Path:
    """The folder of a model, to write to where the package's files can be written.

    Raises:
      UsageError: there is no such model.
    """
    return Path(str(_folder_of(name)))


def name_of(folder: Path) -> str | None:
    """The player's name of a folder among the package's models; None for one that lies
    elsewhere."""
    return f"pretrained:{folder.name}" if folder.resolve().parent == Path(str(_folder())) else None


def _folder_of(name: str) -> Traversable:
    if name not in models():
        known = ", ".join(models()) or "none"
        raise UsageError(f"{_where(name)}: unknown; known models: {known}")
    return _folder().joinpath(name)


def _where(name: str) -> str:
    return f"pretrained model {name!r}"


def _folder() -> Traversable:
    return resources.files("train").joinpath("models")
