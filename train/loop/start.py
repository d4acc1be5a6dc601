"""The weights that a run begins with, where it goes on from another run's."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from train import registry
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, config_to_dict
from train.loop.provenance import provenance
from train.loop.run_directory import STAGES_FILE, has_checkpoint
from train.network import Variables
from train.registry.networks import tell_apart
from train.runtime.devices import is_first_process
from train.runtime.errors import UsageError
from train.runtime.files import write_json


class Start(NamedTuple):
    """Weights to begin with."""

    variables: Variables
    source: str  # where they are from, in words
    stages: list[dict[str, Any]]  # the runs that made them, oldest first, JSON-ready


def start_of(config: RunConfig, directory: Path, *, resume: bool) -> Start | None:
    """Load the weights of `start_weights`; None for random ones, and for a run that goes on from
    its own checkpoint.

    The weights are those that play: averaged ones where the other run averaged them.

    Raises:
      UsageError: there is no such player, or it has other rules or another network.
    """
    if not config.start_weights or (resume and has_checkpoint(directory)):
        return None
    try:
        trained = registry.load_network(config.start_weights)
    except UsageError as error:
        raise UsageError(f"start_weights: {error}") from None
    _check_same(config, trained)
    return Start(trained.variables, trained.source, _stages(trained))


def note_stages(directory: Path, start: Start | None) -> None:
    """Write the chain of runs before this one into its directory; resuming leaves it as it is."""
    if start is not None and is_first_process():
        write_json(directory / STAGES_FILE, start.stages)


def _check_same(config: RunConfig, trained: TrainedNetwork) -> None:
    where, other = f"start_weights: {config.start_weights}", trained.config
    if other.rules != config.rules:
        told, asked = tell_apart(other.rules, config.rules)
        raise UsageError(f"{where}: learned {told}, the run is to learn {asked}")
    for field in dataclasses.fields(config.network):
        old, new = getattr(other.network, field.name), getattr(config.network, field.name)
        if old != new and field.name != "dtype":  # weights are float32, whatever computes
            raise UsageError(
                f"{where}: has network.{field.name} {old!r}, the run's is {new!r}; they must agree"
            )


def _stages(trained: TrainedNetwork) -> list[dict[str, Any]]:
    """The runs that made the weights, each with what repeats it."""
    about = provenance(trained)
    stage = {
        "run": about.get("run"),
        "iteration": about.get("iteration"),
        "source": trained.source,
        "hours": about.get("hours"),
        "starts": about.get("starts"),
        "config": config_to_dict(trained.config),
    }
    return [*(about.get("stages") or []), stage]
