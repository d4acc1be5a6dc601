"""The weights of another run that a run begins with: all of them, or what fits."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.checkpoints.transfer import CarriedPart, carry_over
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, config_to_dict, rule_sets_in_words
from train.loop.history import provenance
from train.loop.programs import first_key
from train.loop.run_directory import STAGES_FILE, TRANSFER_FILE, has_checkpoint
from train.network import Variables, network_for
from train.players.networks import load_network, rules_in_words
from train.runtime.display import Display, Table
from train.runtime.errors import UsageError, usage_errors


class Start(NamedTuple):
    """Weights to begin with."""

    variables: Variables
    source: str  # where they are from, in words
    stages: list[dict[str, Any]]  # the runs that made them, oldest first, JSON-ready
    parts: tuple[CarriedPart, ...]  # that `init_from` took; `start_weights` takes all and has none

    @property
    def files(self) -> dict[str, Any]:
        """What the run's directory keeps of them: JSON-ready, by name."""
        if not self.parts:
            return {STAGES_FILE: self.stages}
        parts = [part._asdict() for part in self.parts]
        return {
            STAGES_FILE: self.stages,
            TRANSFER_FILE: {"source": self.source, "parts": parts},
        }

    def show(self, display: Display) -> None:
        """Say where the weights are from, with a table of what `init_from` took."""
        display.say(f"weights of {self.source}")
        if not self.parts:
            return
        table = Table(
            title="warm start",
            heads=("part", *self.parts[0]._fields[1:]),
            rows=[(name, *(f"{x:,}" if x else "" for x in rest)) for name, *rest in self.parts],
            caption="numbers of parameters and statistics; left: of the source alone",
        )
        display.console.print(table)


def start_of(config: RunConfig, directory: Path, *, resume: bool) -> Start | None:
    """Load the weights of `start_weights` or what fits of `init_from`; None for random ones, and
    for a run that goes on from its own checkpoint.

    The weights are those that play: averaged ones where the other run averaged them.

    Raises:
      UsageError: there is no such player; it has other rules or another network (`start_weights`),
        or games of other player counts, or nothing that fits (`init_from`).
    """
    key = "start_weights" if config.start_weights else "init_from"
    name = getattr(config, key)
    if not name or (resume and has_checkpoint(directory)):
        return None
    with usage_errors(key):
        trained = load_network(name)
        if key == "start_weights":
            _check_same(config, trained)
            return Start(trained.variables, trained.source, _stages(trained), ())
        return _carry(config, trained)


def _carry(config: RunConfig, trained: TrainedNetwork) -> Start:
    """Copies the weights that fit into those of a new network."""
    where, players = config.init_from, config.rules.players
    learned = trained.config.rules.players
    if learned != players:
        raise UsageError(f"{where}: learned games of {learned} players, the run's have {players}")
    network = network_for(config.network, players, size=config.grid_side)
    fresh = jax.jit(network.init)(first_key(config.seed))
    before, after = trained.config.network, config.network
    with usage_errors(where):
        variables, parts = carry_over(
            trained.variables, fresh, before=before, after=after, players=players
        )
    return Start(variables, trained.source, _stages(trained), parts)


def _check_same(config: RunConfig, trained: TrainedNetwork) -> None:
    where, other = config.start_weights, trained.config
    if set(other.learned) != set(config.learned):
        theirs = rules_in_words(other.rules, [config.rules])
        ours = rules_in_words(config.rules, [other.rules])
        if other.mix or config.mix:
            theirs, ours = (rule_sets_in_words(each.rule_sets) for each in (other, config))
        raise UsageError(
            f"{where}: learned {theirs}, the run is to learn {ours}; init_from copies what fits"
        )
    for field in dataclasses.fields(config.network):
        old, new = getattr(other.network, field.name), getattr(config.network, field.name)
        if old != new and field.name != "dtype":  # weights are float32, whatever computes
            raise UsageError(
                f"{where}: has network.{field.name} {old!r}, the run's is {new!r}; they must agree "
                "(init_from copies what fits)"
            )


def _stages(trained: TrainedNetwork) -> list[dict[str, Any]]:
    """The runs that made the weights, each with what repeats it."""
    about = provenance(trained)
    stage = {key: about.get(key) for key in ("run", "iteration", "hours", "starts")}
    stage |= {"source": trained.source, "config": config_to_dict(trained.config)}
    return [*(about.get("stages") or []), stage]
