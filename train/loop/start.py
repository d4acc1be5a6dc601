"""Weights of other runs: those that a run begins with, and those that it plays against."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich.table import Table

from train.checkpoints.exported import is_model, write_model
from train.checkpoints.transfer import Part, carry_over
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, config_to_dict
from train.config.rule_sets import rule_sets_in_words
from train.loop.provenance import provenance
from train.loop.run_directory import STAGES_FILE, TRANSFER_FILE, has_checkpoint
from train.network import Variables
from train.network.build import network_for
from train.players import registry
from train.players.basic import Player
from train.players.networks import tell_apart
from train.runtime.devices import is_first_process
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import write_json, writing

FOLDER = "opponent"
"""Folder of a run with `selfplay.opponent`: the weights that it plays against, as `export` writes
them. A resumed run reads them there, whatever has become of the run that they are from."""
_INIT_SALT = 2**31 - 1
"""Folded into the seed for the first weights; iterations fold in their own, smaller numbers."""


class Start(NamedTuple):
    """Weights to begin with."""

    variables: Variables
    source: str  # where they are from, in words
    stages: list[dict[str, Any]]  # the runs that made them, oldest first, JSON-ready
    parts: tuple[Part, ...]  # what `init_from` took; empty for `start_weights`, which takes all


def first_key(seed: int | jax.Array) -> jax.Array:
    """The key of a run's random weights, by its seed or by the data of the seed's key."""
    key = jax.random.key(seed) if isinstance(seed, int) else jax.random.wrap_key_data(seed)
    return jax.random.fold_in(key, _INIT_SALT)


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


def note_start(directory: Path, start: Start | None, display: Display) -> None:
    """Say where the weights are from, with a table of what `init_from` took, and write the chain of
    runs before this one into its directory; resuming leaves it as it is."""
    if start is None:
        return
    display.say(f"weights of {start.source}")
    if start.parts:
        display.console.print(_transfer_table(start.parts))
    if not is_first_process():
        return
    write_json(directory / STAGES_FILE, start.stages)
    if start.parts:
        parts = [part._asdict() for part in start.parts]
        write_json(directory / TRANSFER_FILE, {"source": start.source, "parts": parts})


def load_opponent(config: RunConfig, *, kept: Path | None = None) -> Player | None:
    """The frozen opponent of a run's self-play, None where it has none.

    Args:
      config: the run.
      kept: as in `make_frozen_opponent`.

    Raises:
      UsageError: there is no such player, it has no weights, or it plays other rules.
    """
    if not config.selfplay.opponent:
        return None
    try:
        return registry.make_frozen_opponent(config.selfplay.opponent, config.rules, kept=kept)
    except UsageError as error:
        raise UsageError(f"selfplay.opponent: {error}") from None


def opponent_of(config: RunConfig, directory: Path, *, resume: bool) -> Player | None:
    """As `load_opponent`; a run that goes on takes the weights that it began with.

    Raises:
      UsageError: as `load_opponent`, or a run that goes on has lost them.
    """
    folder = directory / FOLDER
    if not (config.selfplay.opponent and resume and has_checkpoint(directory)):
        return load_opponent(config)
    if not is_model(folder):
        raise UsageError(
            f"{folder}: the weights that the run plays against are gone, and "
            f"{config.selfplay.opponent!r} may have others by now: put the folder back, or start a "
            "new run"
        )
    return load_opponent(config, kept=folder)


def keep_opponent(directory: Path, opponent: Player | None) -> None:
    """Write the opponent's weights into the run's directory, unless they are from there; by the
    first process.

    Raises:
      UsageError: they cannot be written.
    """
    folder = directory / FOLDER
    trained = None if opponent is None else opponent.trained
    if trained is None or trained.source == str(folder) or not is_first_process():
        return
    with writing(folder):
        write_model(folder, trained.variables, trained.config, provenance(trained))


def _transfer_table(parts: tuple[Part, ...]) -> Table:
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
    before, after = trained.config.network, config.network
    try:
        found = carry_over(trained.variables, fresh, before=before, after=after, players=players)
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
    stage = {key: about.get(key) for key in ("run", "iteration", "hours", "starts")}
    stage |= {"source": trained.source, "config": config_to_dict(trained.config)}
    return [*(about.get("stages") or []), stage]
