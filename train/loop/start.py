"""Weights of other runs: how they were made, and which a run begins with or plays against."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.checkpoints.exported import is_model, write_model
from train.checkpoints.transfer import Part, carry_over
from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, config_to_dict, rule_sets_in_words
from train.loop.run_directory import (
    RESULT_FILE,
    STAGES_FILE,
    STARTS_FILE,
    TRANSFER_FILE,
    has_checkpoint,
)
from train.metrics.rows import METRICS_FILE, Row, elapsed_seconds, read_rows
from train.network import Variables, network_for
from train.players import registry
from train.players.basic import Player
from train.players.networks import load_network, rules_in_words
from train.runtime.display import Display, Table
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import read_json, write_json, writing

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
    with usage_errors(key):
        trained = load_network(name)
        if key == "start_weights":
            _check_same(config, trained)
            return Start(trained.variables, trained.source, _stages(trained), ())
        return _carry(config, trained)


def note_start(directory: Path, start: Start | None, display: Display) -> None:
    """Say where the weights are from, with a table of what `init_from` took, and write the chain of
    runs before this one into its directory; resuming leaves it as it is."""
    if start is None:
        return
    display.say(f"weights of {start.source}")
    write_json(directory / STAGES_FILE, start.stages)
    if start.parts:
        table = Table(
            title="warm start",
            heads=("part", *Part._fields[1:]),
            rows=[(name, *(f"{x:,}" if x else "" for x in rest)) for name, *rest in start.parts],
            caption="numbers of parameters and statistics; left: of the source alone",
        )
        display.console.print(table)
        parts = [part._asdict() for part in start.parts]
        write_json(directory / TRANSFER_FILE, {"source": start.source, "parts": parts})


def load_opponent(
    config: RunConfig, directory: Path | None = None, *, resume: bool = False
) -> Player | None:
    """The frozen opponent of a run's self-play, None where it has none; a run that goes on takes
    the weights that its directory keeps.

    Raises:
      UsageError: there is no such player, it has no weights, or it plays other rules; a run that
        goes on has lost them.
    """
    name, kept = config.selfplay.opponent, None
    if not name:
        return None
    if directory is not None and resume and has_checkpoint(directory):
        kept = directory / FOLDER
        if not is_model(kept):
            raise UsageError(
                f"{kept}: the weights that the run plays against are gone, and {name!r} may have "
                "others by now: put the folder back, or start a new run"
            )
    with usage_errors("selfplay.opponent"):
        return registry.make_frozen_opponent(name, config.rules, kept=kept)


def keep_opponent(directory: Path, opponent: Player | None) -> None:
    """Write the opponent's weights into the run's directory, unless they are from there.

    Raises:
      UsageError: they cannot be written.
    """
    folder = directory / FOLDER
    trained = None if opponent is None else opponent.trained
    if trained is not None and trained.source != str(folder):
        with writing(folder):
            write_model(folder, trained.variables, trained.config, provenance(trained))


def _carry(config: RunConfig, trained: TrainedNetwork) -> Start:
    """What fits of other weights, in a new network's."""
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
            f"{where}: learned {theirs}, the run is to learn {ours}; init_from takes what fits"
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


def provenance(trained: TrainedNetwork) -> dict[str, Any]:
    """What the run's directory tells of the weights, or, of exported ones, their card.

    Returns:
      JSON-ready entries: `run` and `iteration`; `starts`, each with time, versions and devices;
      `hours` of `training` (self-play and learning), of `compiling`, and of `all`, which has saving
      and short matches besides; `stages`, the runs that came before, oldest first; `transfer`, what
      a run with `init_from` took of the last of them, else None; `curve`, the short matches up to
      these weights; `evaluation`, the final matches, None where they were not of these weights;
      `last_metrics`, the row of metrics.
    """
    run = trained.run
    if run is None:
        return trained.about
    iteration, evaluation = trained.about["iteration"], _read_json(run / RESULT_FILE)
    if evaluation and evaluation.get("iterations") != iteration:
        evaluation = None  # The matches of a run's end say nothing of its earlier weights.
    path = run / METRICS_FILE
    rows = [x for x in (read_rows(path) if path.exists() else ()) if x["iteration"] <= iteration]
    hours, last = None, None
    if rows and rows[-1]["iteration"] == iteration:
        last = rows[-1]
        hours = {
            "training": sum(map(_training_seconds, rows)) / 3600,
            "compiling": sum(row.get("compile_seconds") or 0.0 for row in rows) / 3600,
            "all": elapsed_seconds(rows)[-1] / 3600,
        }
    return {
        **trained.about,
        "starts": (_read_json(run / STARTS_FILE) or {}).get("starts"),
        "hours": hours,
        "stages": stages_of(run),
        "transfer": _read_json(run / TRANSFER_FILE),
        "curve": _curve(rows),
        "evaluation": evaluation,
        "last_metrics": last,
    }


def stages_of(run: Path) -> list[dict[str, Any]]:
    """The runs whose weights a run began with, one after the other, oldest first.

    Raises:
      UsageError: its list of them cannot be read.
    """
    return _read_json(run / STAGES_FILE) or []


def code_of(run: Path) -> list[dict[str, Any]]:
    """The code that a run was trained by: of each start the `version` of the package and `git`, the
    revision, None where it is not known; what is the same again is left out.

    Raises:
      UsageError: its list of starts cannot be read.
    """
    starts = (_read_json(run / STARTS_FILE) or {}).get("starts") or []
    code = [{"version": x["versions"]["wallgo-jax"], "git": x.get("git")} for x in starts]
    return [each for place, each in enumerate(code) if each not in code[:place]]


def code_in_words(code: Iterable[Mapping[str, Any]]) -> str:
    """What `code_of` finds as text; several where a run was interrupted and went on by another."""
    texts = []
    for each in code:
        git = each["git"] or {"revision": "", "dirty": False}
        revision = f" at {git['revision'][:12]}" if git["revision"] else ""
        texts.append(f"{each['version']}{revision}{' with changes' if git['dirty'] else ''}")
    return " then ".join(texts) or "not recorded"


def _curve(rows: list[Row]) -> list[dict[str, Any]]:
    """Each iteration with short matches, with the hours of training up to it."""
    points, seconds = [], 0.0
    for row in rows:
        seconds += _training_seconds(row)
        if row.get("matches"):
            point = {"iteration": row["iteration"], "hours": seconds / 3600}
            points.append(point | {key: row.get(key) for key in ("matches", "intervals_95")})
    return points


def _training_seconds(row: Row) -> float:
    return (row.get("selfplay_seconds") or 0.0) + (row.get("learn_seconds") or 0.0)


def _read_json(path: Path) -> Any:
    return read_json(path) if path.exists() else None
