"""What a player knows and what its network sees: accuracy, proofs, parts, attention, owners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from train.api.arguments import (
    GROWN,
    SOLVED_RULES,
    AnyPlayer,
    AnyRules,
    File,
    Files,
    LateFile,
    Progress,
    ReadFile,
    States,
    Target,
    WrittenFile,
    arg,
)
from train.api.signatures import only, verb, without
from train.config import SHIPPED
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import AtLeastOne, Count, Seed

if TYPE_CHECKING:
    from train.analysis.accuracy import Accuracy
    from train.analysis.attention import AttentionMaps, OwnershipMap
    from train.analysis.describe import Description
    from train.analysis.late_proofs import Proofs
    from train.checkpoints.weights import TrainedNetwork
    from wallgo_jax.game.rules import Rules
    from wallgo_jax.game.state import State


@verb
def accuracy(
    player: AnyPlayer,
    *,
    positions: Annotated[Count, without("late"), arg(hint="")] = 0,
    min_walls: Annotated[Count, only("positions")] = 4,
    late: LateFile | None = None,
    batch: AtLeastOne = 512,
    rules: Annotated[
        AnyRules | None,
        without("late"),
        arg("RULES", f"(default: the player's own, else {SOLVED_RULES})"),
    ] = None,
    seed: Seed = 0,
    config: ReadFile | None = None,
    progress: Progress = False,
) -> Accuracy:
    """Measure how often a player keeps the value of the game: over all positions of a solved board,
    over sampled ones of a larger board, or over proven late positions of games.

    Args:
      player: to measure, named as in docs/players.md.
      positions: positions of random games to sample, each solved by alpha-beta (one stone each, at
        most 4x4 cells), in place of all positions of a board that is solved as a whole (3x3).
      min_walls: fewest walls of a sampled position; fewer take alpha-beta longer.
      late: file of proven late positions, to measure there instead.
      batch: positions evaluated in parallel.
      rules: rules of a board that can be solved: JSON object, or file (JSON or TOML).
      seed: random seed.
      config: TOML file of a run; its tables [heuristics] weigh the players ethen and wjx.
      progress: show a bar.

    Raises:
      UsageError: a player, rules or number is not allowed.

    Example:
      `train.accuracy("search:runs/tiny@64").table()`
    """
    import dataclasses

    from train.analysis import accuracy as measuring
    from train.analysis.late_positions import LatePositions, load_late
    from train.api.players import make_player, rules_for
    from train.config import read_config
    from train.runtime.interrupts import follow

    proven = late if late is None or isinstance(late, LatePositions) else load_late(Path(late))
    played = proven.rules if proven else rules_for([player], rules, default=SOLVED_RULES)
    made = make_player(player, played, heuristics=read_config(config).heuristics)
    is_quiet = not progress
    if proven is not None:
        return measuring.late_accuracy(
            made.registered, proven, batch=batch, seed=seed, is_quiet=is_quiet
        )
    if not positions:
        return measuring.value_accuracy(
            made.registered, played, batch=batch, seed=seed, is_quiet=is_quiet
        )
    answer = "the positions solved so far count"
    with follow(progress, made.name, positions, "positions", answer=answer) as work:
        sampled = measuring.sampled_accuracy(
            made.registered,
            played,
            measuring.SampleOptions(positions, min_walls, seed),
            batch=batch,
            on_progress=work,
            should_stop=work.should_stop,
        )
    return dataclasses.replace(sampled, is_interrupted=work.should_stop())


@verb
def prove(
    games: Annotated[Files, Field(min_length=1), arg("FILE ...", "(required)")],
    *,
    late: Annotated[File, GROWN, arg("FILE")],
    positions: AtLeastOne = 2000,
    per_game: AtLeastOne = 4,
    max_plies_left: AtLeastOne = 12,
    node_limit: AtLeastOne = 50_000,
    sample: WrittenFile | None = None,
    sample_positions: Annotated[AtLeastOne, only("sample")] = 1000,
    seed: Seed = 0,
    progress: Progress = False,
) -> Proofs:
    """Prove late positions of recorded games: their value, and all plays that keep it. `accuracy`
    measures players in them.

    Args:
      games: record files, such as `match` writes.
      late: file to which each game is added once its positions are proven. Games that it already
        has are skipped.
      positions: number of proven positions at which to stop, including those of the file.
      per_game: positions to try in each game.
      max_plies_left: take positions at most this many plies before the end of their games.
      node_limit: largest number of positions that one proof may look at.
      sample: file for a sample of the proven positions, spread evenly over the plies left.
        Positions in which a play can lose something come first. It may end in .gz.
      sample_positions: number of positions in that sample.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: a file cannot be read or written, or the games' rules cannot be proven.

    Example:
      `train.prove(["out/games.jsonl.gz"], late="out/late.jsonl").table()`
    """
    from train.analysis import late_positions, late_proofs
    from train.data.record_dataset import read_recorded_games
    from train.runtime.files import check_writable
    from train.runtime.interrupts import follow

    recorded = read_recorded_games([Path(file) for file in games], keys=())
    file = Path(late)
    check_writable(file)
    how = late_proofs.ProofOptions(positions, per_game, max_plies_left, node_limit, seed)
    answer = "the games that are proven are kept"
    with follow(progress, "proving late positions", positions, "positions", answer=answer) as work:
        proven = late_proofs.prove_games(
            recorded, file, how, on_progress=work, should_stop=work.should_stop
        )
    written = {}
    if sample is not None:
        chosen = late_positions.spread(
            proven,
            sample_positions,
            seed=seed,
            preferred=late_proofs.telling_positions(proven),
        )
        late_positions.write_late(Path(sample), chosen)
        count = sum(len(game.proven) for game in chosen)
        written = {Path(sample): f"{count} positions"}
    return late_proofs.Proofs(proven, file, work.should_stop(), written)


@verb
def describe(
    target: Annotated[Target, arg("[CONFIG|PLAYER]", f"(default: {SHIPPED})")] = SHIPPED,
    *,
    batch: AtLeastOne = 256,
    measure: Annotated[bool, arg(hint="")] = True,
) -> Description:
    """Describe a network part by part: shapes, parameters, multiply-adds, and its speed here.

    Args:
      target: TOML file or trained player, named as in docs/players.md; Python also takes a config
        and tables of one.
      batch: boards of an evaluation whose speed is measured.
      measure: also measure its speed, which takes some seconds; on by default.

    Raises:
      UsageError: the target cannot be read.

    Example:
      `train.describe("configs/restnet.toml", measure=False).parts`
    """
    from collections.abc import Mapping

    from train.analysis import describe as describing
    from train.api.configs import make_config
    from train.config import RunConfig

    if isinstance(target, RunConfig | Mapping):
        target = make_config(target)
    return describing.describe(target, batch=batch, measure=measure)


@verb
def attention(player: AnyPlayer, state: States, cell: str) -> AttentionMaps:
    """Show to which cells a cell attends, in each T block and head of a player's network.

    Args:
      player: a trained one, or its name.
      state: one board.
      cell: such as `C3`.

    Raises:
      UsageError: the network has no T block, or there is no such cell.

    Example:
      `train.attention("runs/quickstart", env.init(), "C3")`
    """
    from train.analysis import attention as looking
    from wallgo_jax.notation import parse_cell

    trained, game = _network_and_state(player, state)
    with usage_errors():
        index = parse_cell(cell, grid=game.grid)
    config = trained.config.network
    raw = looking.raw_attention(config, trained.variables, game, index)
    return looking.AttentionMaps(raw, looking.attention_blocks(config), index, game, trained.name)


@verb
def ownership(player: AnyPlayer, state: States) -> OwnershipMap:
    """Who will own each cell, as a player's network predicts, or a heuristic.

    Args:
      player: a trained one, or its name, or `wjx` or `ethen`.
      state: one board.

    Raises:
      UsageError: the network has no ownership head, a heuristic's game is not one of two players,
        or the board has a rim.

    Example:
      `train.ownership("wjx", env.init())`
    """
    from train.analysis import attention as looking
    from wallgo_jax.formats.rules_text import read_rules

    if isinstance(player, str) and (heuristic := looking.named_heuristic(player)):
        game = _one_board(state, read_rules(SOLVED_RULES))
        return looking.OwnershipMap(looking.heuristic_ownership(heuristic, game), game)
    trained, game = _network_and_state(player, state)
    owners = looking.predicted_ownership(trained.config.network, trained.variables, game)
    return looking.OwnershipMap(owners, game)


def _network_and_state(player: AnyPlayer, state: States) -> tuple[TrainedNetwork, State]:
    from train.api.players import network_of

    trained = network_of(player)
    smallest = min(trained.config.learned, key=lambda rules: (rules.size, rules.stones))
    return trained, _one_board(state, smallest)


def _one_board(state: States, smallest: Rules) -> State:
    import jax
    import numpy as np

    from train.api.states import batch_of

    batch, is_one = batch_of(state, smallest)
    if not is_one:
        raise UsageError("state: is a batch; one board is drawn")
    return jax.tree.map(lambda x: np.asarray(x)[0], batch)
