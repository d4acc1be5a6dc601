"""Is the game balanced, and how does strong play open? Games of a network against itself, each ply
searched in full with Gumbel noise, from the rules' start.

The intervals count games (Wilson); all games are of one training, so they say nothing of how far
another seed's player would differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from train.arena.result import wilson_interval
from train.experiments.lib import openings, pages, stats
from train.experiments.lib.pages import Report, Table
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import SelfplayGames, Work, check_two_players, selfplay_games
from train.runtime.host import fetch
from wallgo_jax.board import bitboard
from wallgo_jax.game.rules import PRESETS, Rules, named

PAPER = {"wallzero-empty": 0.5357, "wallzero-4stone": 0.5037}
"""Red's win rate in 5,000 games of self-play each ("WallZero", Chen, Arjonilla, Wu, Wu, slide
"Opening Strategy & Game Balance Analysis"); both ± 1.38 %."""
_PAPER_HALF = 0.0138
_HEADS = ("player against itself", "rules", "games", "Red wins", "95 %", "paper", "draws", "plies")
_HEADS += ("winner's share of cells", "winner's lead", "distinct setups", "most common setup")
_HEADS += ("first eight plies unique",)


class Balance(NamedTuple):
    """Figures of some games."""

    games: int
    red: float  # Red's win rate, a draw as half a win
    low: float  # ends of its 95 % interval by Wilson
    high: float
    draws: float
    plies: float
    share: float  # the winner's cells over both players' cells, mean over games that were won
    margin: float  # cells that the winner is ahead, mean over games that were won
    setups: int  # distinct ones, up to the symmetries of the rules
    mode_share: float  # share of the most common setup
    eight: float  # share of games whose first eight plies no other game has


def report(work: Work) -> Report:
    """Play the games and describe them."""
    scale = work.scale.balance
    rows, tables, pictures, text, data = [], [], [], pages.paragraphs(__doc__), {}
    for player in scale.players:
        check_two_players(player)
    for player in scale.players:
        for simulations in scale.simulations:
            games = selfplay_games(work, player, simulations=simulations, games=scale.games)
            name, rules = f"{player}@{simulations}", rules_name(games.rules)
            tree = openings.tree_of(games, depth=scale.opening_depth)
            balance = balance_of(games, tree, areas=areas_of(games))
            rows.append(_row(name, rules, balance))
            text += _paper_line(name, rules, balance)
            tables.append(openings.line_table(tree, title=f"Openings of {name}"))
            tables.append(openings.tree_table(tree, title=f"The same as a tree, {name}"))
            pictures += openings.placement_pictures(games, tree, name=name)
            pictures += openings.tree_pictures(tree, name=name)
            record = {"rules": rules, **balance._asdict(), "openings": openings.record(tree)}
            data[name] = record
    main = Table("Balance", _HEADS, rows)
    return Report("Balance and openings", text, [main, *tables], pictures, data)


def balance_of(games: SelfplayGames, tree: openings.OpeningTree, *, areas: np.ndarray) -> Balance:
    """Count the games of two players.

    Args:
      games: finished ones.
      tree: of their openings.
      areas: int[G, 2], cells that each player owns at the end.
    """
    reward = games.rewards[:, 0]
    red = float((reward > 0).mean() + (reward == 0).mean() / 2)
    winner = np.where(reward[:, None] > 0, areas, areas[:, ::-1])[reward != 0]
    won = winner[winner.sum(axis=1) > 0]
    first_eight = [record.actions[:8] for record in games.recorded.records]
    counts = {plies: first_eight.count(plies) for plies in set(first_eight)}
    low, high = wilson_interval(red, len(reward))
    return Balance(
        games=len(reward),
        red=red,
        low=low,
        high=high,
        draws=float((reward == 0).mean()),
        plies=float(games.plies.mean()),
        share=float((won[:, 0] / won.sum(axis=1)).mean()) if len(won) else float("nan"),
        margin=float((won[:, 0] - won[:, 1]).mean()) if len(won) else float("nan"),
        setups=len(tree.setups),
        mode_share=max(tree.setups.values()) / len(reward),
        eight=sum(counts[plies] == 1 for plies in first_eight) / len(first_eight),
    )


def areas_of(games: SelfplayGames) -> np.ndarray:
    """int[G, 2]: cells that each player owns at the end."""
    owned = jnp.asarray(games.examples().outcome.owned)
    return np.asarray(fetch(bitboard.to_mask(owned, games.rules.size))).sum(axis=-1)


def rules_name(rules: Rules) -> str:
    """The preset of rules, or their size in words."""
    return next((name for name in PRESETS if named(name) == rules), f"{rules.size}×{rules.size}")


def _row(name: str, rules: str, balance: Balance) -> Sequence[str]:
    paper, (_, red, low, high, *_) = PAPER.get(rules), balance
    return [
        f"`{name}`",
        f"`{rules}`",
        f"{balance.games:,}",
        *Estimate(red, low, high, balance.games).cells(2),
        "" if paper is None else f"{100 * paper:.2f} ± {100 * _PAPER_HALF:.2f} %",
        stats.percent(balance.draws, 2),
        f"{balance.plies:.1f}",
        stats.percent(balance.share),
        f"{balance.margin:.1f}",
        f"{balance.setups:,}",
        stats.percent(balance.mode_share),
        stats.percent(balance.eight),
    ]


def _paper_line(name: str, rules: str, balance: Balance) -> list[str]:
    """Whether Red's interval and the paper's overlap, where the paper has the rules."""
    if rules not in PAPER:
        return []
    low, high = PAPER[rules] - _PAPER_HALF, PAPER[rules] + _PAPER_HALF
    agrees = balance.low <= high and low <= balance.high
    verb = "overlap" if agrees else "do not overlap"
    return [f"`{name}` on `{rules}`: Red's interval and the paper's {verb}."]
