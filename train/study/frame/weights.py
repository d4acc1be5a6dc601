"""Which weights a training names: their checksums, since a name may come to mean others."""

from collections.abc import Callable
from typing import Any

from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig
from train.players.registry import load_network
from train.runtime.errors import UsageError


def made_by(trained: TrainedNetwork) -> dict[str, str]:
    """What a training that begins with a network, or plays against it, is known by; JSON-ready."""
    return {"source": trained.source, "weights": trained.digest}


def digest_of(name: str) -> str:
    """The checksum of a trained player's weights.

    Raises:
      UsageError: there is no such player, or it cannot be read.
    """
    return load_network(name).digest


def named_weights(config: RunConfig, digest: Callable[[str], str] = digest_of) -> dict[str, Any]:
    """The checksums of the weights that a run's config names, by key; empty where it names none.

    Raises:
      UsageError: there is no such player, or it cannot be read.
    """
    names = {
        "start_weights": config.start_weights,
        "init_from": config.init_from,
        "selfplay.opponent": config.selfplay.opponent,
    }
    found = {}
    for key, name in names.items():
        if name:
            try:
                found[key] = digest(name)
            except UsageError as error:
                raise UsageError(f"{key}: {error}") from None
    return found
