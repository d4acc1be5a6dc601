"""Draws what a network attends to, and the owners that a network or a heuristic predicts, in one
position.

After Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", sections on attention maps and on board evaluation. A heuristic shares out cells by
the weights of `train.players.heuristics`. One board at a time, on the host. `draw_attention` and
`draw_ownership` read a player and a game and write a file.

T Transformer blocks, H W cells, P players.
"""

import functools
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.analysis import pictures
from train.analysis.pictures import BoardPicture
from train.config.run import HeuristicConfig, HeuristicsConfig
from train.network import (
    TRANSFORMER,
    NetworkConfig,
    Variables,
    network_for,
    observer_for,
    parse_blocks,
)
from train.players.heuristics import cell_weights
from train.players.names import read_name
from train.players.networks import load_network
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import replace_bytes
from train.runtime.host import fetch
from train.search.report import owners_by_player
from wallgo_jax import render
from wallgo_jax.env import State as EnvState
from wallgo_jax.formats.option_names import argument
from wallgo_jax.formats.sources import SourceRequest, read_games, read_position
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import parse_cell
from wallgo_jax.view import snapshot

SUFFIXES = (".svg", ".png", ".npz", ".json")


def attention_blocks(config: NetworkConfig) -> tuple[int, ...]:
    """The places of the T blocks in the trunk, counted from 1.

    Raises:
      UsageError: the network has no T block.
    """
    blocks = parse_blocks(config.blocks)
    places = tuple(i for i, block in enumerate(blocks, start=1) if block == TRANSFORMER)
    if not places:
        raise UsageError(
            f"attention: the network {config.blocks!r} has no T block; choose a player with one"
        )
    return places


def raw_attention(
    config: NetworkConfig, variables: Variables, state: EnvState | State, cell: int
) -> np.ndarray:
    """float32[T, heads, H, W], each map of sum 1: the weight of each cell in a cell's attention.

    Args:
      config: of the network.
      variables: its weights.
      state: one board, for the network's number of players.
      cell: the attending cell, a flat index.

    Raises:
      UsageError: the network has no T block.
    """
    attention_blocks(config)
    grid, game = _board(state)
    attention = fetch(_attention(variables, game, config=config))
    return attention[:, :, cell].reshape(*attention.shape[:2], grid, grid)


def predicted_ownership(
    config: NetworkConfig, variables: Variables, state: EnvState | State
) -> np.ndarray:
    """float32[P + 1, H, W]: the probability of each cell's final owners, player 0 first, nobody
    last.

    Raises:
      UsageError: the network has no ownership head.
    """
    if not config.ownership:
        raise UsageError("ownership: the network has no ownership head; choose a player with one")
    _, game = _board(state)
    return np.moveaxis(fetch(_ownership(variables, game, config=config)), -1, 0)


def heuristic_ownership(config: HeuristicConfig, state: EnvState | State) -> np.ndarray:
    """float32[3, H, W]: how a heuristic shares out each cell among two players.

    Of a cell of weight w Red's share is (1 + w) / 2, so that its board evaluation is w.

    Raises:
      UsageError: the game is not one of two players.
    """
    grid, game = _board(state)
    if _players(game) != 2:
        raise UsageError(f"ownership: a heuristic draws maps for 2 players, not {_players(game)}")
    weight = fetch(jax.jit(cell_weights, static_argnames="config")(game, np.int32(0), config))
    return np.stack([(1 + weight) / 2, (1 - weight) / 2, np.zeros((grid, grid), np.float32)])


def named_heuristic(player: str) -> HeuristicConfig | None:
    """The options of a heuristic, if the player's name is one's."""
    return getattr(HeuristicsConfig(), read_name(player).kind, None)


def true_ownership(state: EnvState | State) -> np.ndarray:
    """float32[P + 1, H, W] of 0 and 1: the owner of each cell, nobody last."""
    shown = snapshot.take_snapshot(state)
    owners = np.array(shown.owner).reshape(shown.grid, shown.grid)
    kinds = np.array([*range(shown.players), snapshot.NOBODY])
    return (owners == kinds[:, None, None]).astype(np.float32)


def board_evaluation(ownership: np.ndarray) -> np.ndarray:
    """float32[P, H, W] in [-1, 1]: each player's share of a cell minus the shares of the others.

    For two players the first map is the paper's board evaluation, the second its negative.
    """
    shares = ownership[:-1]
    return 2 * shares - shares.sum(axis=0, keepdims=True)


def evaluation_error(predicted: np.ndarray, true: np.ndarray) -> float:
    """Mean squared error of the board evaluation, over cells and players."""
    return float(np.mean((board_evaluation(predicted) - board_evaluation(true)) ** 2))


class AttentionMaps(NamedTuple):
    """What a cell attends to in each T block and head."""

    raw: np.ndarray  # float32[T, heads, H, W], each map of sum 1
    blocks: tuple[int, ...]  # places of the T blocks in the trunk, from 1
    cell: int
    state: State
    name: str

    @property
    def maps(self) -> np.ndarray:
        """float32[T, heads, H, W]: each map rescaled to 0 to 1."""
        return pictures.normalised(self.raw)

    def svg(self, *, theme: str = "light") -> str:
        """A row of boards for each T block."""
        return pictures.svg(
            pictures.attention_picture(
                self.raw, self.blocks, self.state, self.cell, name=self.name, theme=theme
            )
        )

    def _repr_html_(self) -> str:
        return self.svg()


class OwnershipMap(NamedTuple):
    """The final owners that a network or a heuristic expects."""

    owners: np.ndarray  # float32[P + 1, H, W] chances, player 0 first, nobody last
    state: State

    @property
    def evaluation(self) -> np.ndarray:
        """float32[P, H, W] from -1 to 1: each player's share of a cell less those of the others."""
        return board_evaluation(self.owners)

    def error(self, final: EnvState | State) -> float:
        """Mean squared error of the evaluation against the owners at the end of the game, over
        cells and players, 0 to 4."""
        return evaluation_error(self.owners, true_ownership(final))

    def svg(self, *, theme: str = "light") -> str:
        """The board with player 0's evaluation as heat."""
        heat = self.evaluation[0].ravel()
        label = "Red's share less the others'"
        return render.svg(self.state, heat=heat, heat_label=label, theme=theme)

    def _repr_html_(self) -> str:
        return self.svg()


def draw_attention(
    player: str,
    request: SourceRequest,
    *,
    ply: int | None,
    cell: str,
    out: Path,
    theme: str = "light",
) -> None:
    """Write the attention of a cell in a trained player's network.

    Args:
      player: its name, see `train.players.names`.
      request: one game or position, as `python -m wallgo_jax show` takes it; moves that do not say
        their rules are of those that the network has learned.
      ply: plies of the game to play; None for all.
      cell: the attending cell, such as `C3`.
      out: file to write: a picture (.svg, .png) or the arrays (.npz, .json).
      theme: `light` or `dark`.

    Raises:
      UsageError: the player, the game, the cell or the file is not as described.
    """
    with usage_errors():
        _check_ending(out)
        trained = load_network(player)
        request = request._replace(default_rules=trained.config.rules)
        state = read_position(request, ply=-1 if ply is None else ply)
        index = parse_cell(cell, grid=_board(state)[0])
        _check_players(player, trained.config.rules, state)
        blocks = attention_blocks(trained.config.network)
        raw = raw_attention(trained.config.network, trained.variables, state, index)
        picture = pictures.attention_picture(
            raw, blocks, state, index, name=trained.name, theme=theme
        )
        facts = {"network": trained.source, "ply": int(state.position.ply), "cell": cell.upper()}
        arrays = {"blocks": blocks, "raw": raw, "maps": pictures.normalised(raw)}
        _write(out, picture, facts | arrays)


def draw_ownership(
    player: str, request: SourceRequest, *, ply: int, out: Path, theme: str = "light"
) -> None:
    """Write the final ownership that a trained player's network, or a heuristic, predicts at a ply,
    and the true one.

    Args and errors are those of `draw_attention`; the game must have ended.
    """
    with usage_errors():
        _check_ending(out)
        if heuristic := named_heuristic(player):
            name, source, learned = player, player, None
            predict = functools.partial(heuristic_ownership, heuristic)
        else:
            trained = load_network(player)
            name, source, learned = trained.name, trained.source, trained.config.rules
            of_network = trained.config.network, trained.variables
            predict = functools.partial(predicted_ownership, *of_network)
        request = request._replace(default_rules=learned)
        played = next(read_games(request)).game
        last = len(played.actions)
        if not played.is_over:
            raise ValueError(
                f"{request.source}: the game has not ended after {last} plies; ownership is "
                "compared with the end of a game"
            )
        if not 0 <= ply <= last:
            raise ValueError(f"{argument('ply', ply)}: the game has plies 0 to {last}")
        state, final = played.states[ply], played.states[-1]
        if learned is not None:
            _check_players(player, learned, state)
        predicted = predict(state)
        true = true_ownership(final)
        error = evaluation_error(predicted, true)
        named = {"error": error, "name": name, "theme": theme}
        picture = pictures.ownership_picture(predicted, true, state, final, **named)
        facts = {"network": source, "ply": ply, "error": error}
        _write(out, picture, {**facts, "predicted": predicted, "true": true})


def _check_ending(out: Path) -> None:
    if out.suffix not in SUFFIXES:
        named = argument("out", str(out))
        raise ValueError(f"{named}: the ending is not one of {', '.join(SUFFIXES)}")


@functools.partial(jax.jit, static_argnames="config")
def _attention(variables: Variables, state: State, *, config: NetworkConfig) -> jax.Array:
    """float32[T, heads, H W, H W]"""
    network = network_for(config, _players(state))
    return network.attention(variables, observer_for(config)(state, None)[None])[0]


@functools.partial(jax.jit, static_argnames="config")
def _ownership(variables: Variables, state: State, *, config: NetworkConfig) -> jax.Array:
    """float32[H, W, P + 1]"""
    network = network_for(config, _players(state))
    logits = network.evaluate(variables, observer_for(config)(state, None)[None]).ownership
    assert logits is not None
    shares = jax.nn.softmax(logits, axis=-1)
    return owners_by_player(shares, jnp.asarray(state.position.player)[None])[0]


def _board(state: EnvState | State) -> tuple[int, State]:
    """The grid and the state of one board; a batch is a ValueError, and a board in a larger grid,
    whose rim would be taken for cells, is a UsageError."""
    game = snapshot.one_board(state)
    grid, size = game.grid, int(game.variant.size)
    if grid != size:
        raise UsageError(
            f"grid {grid}: a map needs a board that fills its grid, and this one is of size {size}"
        )
    return grid, game


def _players(game: State) -> int:
    return game.position.stones.shape[0]


def _check_players(player: str, rules: Rules, state: State) -> None:
    learned, shown = rules.players, _players(state)
    if learned != shown:
        raise UsageError(f"{player}: its network is for {learned} players, the game has {shown}")


def _write(out: Path, picture: BoardPicture, arrays: Mapping[str, Any]) -> None:
    """Write the picture or the arrays in the format that the file's suffix names."""
    compressed = io.BytesIO()
    if out.suffix == ".npz":
        np.savez_compressed(compressed, **arrays)
    content = {
        ".svg": lambda: pictures.svg(picture).encode(),
        ".png": lambda: render.png(pictures.svg(picture)),
        ".npz": compressed.getvalue,
        ".json": lambda: json.dumps(arrays, default=np.ndarray.tolist).encode(),
    }[out.suffix]
    replace_bytes(out, content())
