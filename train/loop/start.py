"""The weights that a run begins with, where it goes on from another run's."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich.table import Table

from train.checkpoints.transfer import Part, carry_over
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, config_to_dict
from train.config.rule_sets import rule_sets_in_words
from train.loop.provenance import provenance
from train.loop.run_directory import STAGES_FILE, TRANSFER_FILE, has_checkpoint
from train.network import Variables
from train.network.build import network_for
from train.players import registry
from train.players.networks import tell_apart
from train.programs.state import first_key
from train.runtime.devices import is_first_process
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import write_json


class Start(NamedTuple):
    """Weights to begin with."""

    variables: Variables
    source: str  # where they are from, in words
    stages: list[dict[str, Any]]  # the runs that made them, oldest first, JSON-ready
    parts: tuple[Part, ...]  # what `init_from` took; empty for `start_weights`, which takes all


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
    try:
        trained = registry.load_network(name)
        if key == "start_weights":
            _check_same(config, trained)
            return Start(trained.variables, trained.source, _stages(trained), ())
        return _carry(config, trained)
    except UsageError as error:
        raise UsageError(f"{key}: {error}") from None


def show_start(start: Start | None, display: Display) -> None:
    """Say where the weights are from, with a table of what `init_from` took."""
    if start is None:
        return
    display.say(f"weights of {start.source}")
    if start.parts:
        display.console.print(transfer_table(start.parts))


def note_stages(directory: Path, start: Start | None) -> None:
    """Write the chain of runs before this one into its directory, and what was taken of the last;
    resuming leaves both as they are."""
    if start is None or not is_first_process():
        return
    write_json(directory / STAGES_FILE, start.stages)
    if start.parts:
        parts = [part._asdict() for part in start.parts]
        write_json(directory / TRANSFER_FILE, {"source": start.source, "parts": parts})


def transfer_table(parts: tuple[Part, ...]) -> Table:
    """What a warm start took, in numbers of each part."""
    table = Table(
        title="warm start",
        title_justify="left",
        caption="numbers of parameters and statistics; left: of the source alone",
        caption_justify="left",
    )
    table.add_column("part", no_wrap=True)
    for head in ("taken", "new", "left"):
        table.add_column(head, justify="right", no_wrap=True)
    for part in parts:
        numbers = (f"{number:,}" if number else "" for number in (part.taken, part.new, part.left))
        table.add_row(part.name, *numbers)
    return table


def _carry(config: RunConfig, trained: TrainedNetwork) -> Start:
    """What fits of other weights, in a new network's."""
    where, players = config.init_from, config.rules.players
    learned = trained.config.rules.players
    if learned != players:
        raise UsageError(f"{where}: learned games of {learned} players, the run's have {players}")
    network = network_for(config.network, players, size=config.grid_side)
    fresh = jax.jit(network.init)(first_key(config.seed))
    try:
        found = carry_over(
            trained.variables,
            fresh,
            before=trained.config.network,
            after=config.network,
            players=players,
        )
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return Start(found.variables, trained.source, _stages(trained), found.parts)


def _check_same(config: RunConfig, trained: TrainedNetwork) -> None:
    where, other = config.start_weights, trained.config
    if set(other.learned) != set(config.learned):
        told, asked = tell_apart(other.rules, config.rules)
        if other.mix or config.mix:
            told, asked = (rule_sets_in_words(each.rule_sets) for each in (other, config))
        raise UsageError(
            f"{where}: learned {told}, the run is to learn {asked}; init_from takes what fits"
        )
    for field in dataclasses.fields(config.network):
        old, new = getattr(other.network, field.name), getattr(config.network, field.name)
        if old != new and field.name != "dtype":  # weights are float32, whatever computes
            raise UsageError(
                f"{where}: has network.{field.name} {old!r}, the run's is {new!r}; they must agree "
                "(init_from takes what fits)"
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
