"""Balance and openings of strong play: who wins, how far apart, where stones are placed.

G games, N cells.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from train.arena.result import wilson_interval
from train.runtime.host import fetch
from train.study.frame.own_games import OwnGames, check_two_players, own_games
from train.study.frame.report import Report, Table, percent, percent_range
from train.study.frame.work import Work
from train.study.topics import opening_tree, openings
from wallgo_jax.board import bitboard
from wallgo_jax.game.rules import named

PAPER = {"wallzero-empty": 0.5357, "wallzero-4stone": 0.5037}
"""Red's win rate in 5,000 games of self-play each ("WallZero", Chen, Arjonilla, Wu, Wu, slide
"Opening Strategy & Game Balance Analysis"); both ± 1.38 %."""
_PAPER_HALF = 0.0138


class Balance(NamedTuple):
    """Figures of some games."""

    games: int
    red: float  # Red's win rate, a draw as half a win
    low: float
    high: float
    draws: float
    plies: float
    share: float  # the winner's cells over both players' cells, mean over games that were won
    margin: float  # cells that the winner is ahead, likewise
    setups: int  # distinct ones, up to the symmetries of the rules
    commonest: float  # share of the commonest
    eight: float  # share of games whose first eight plies no other game has


def report(work: Work) -> Report:
    """Play the games and describe them."""
    scale = work.scale.balance
    rows, pictures, trees, data = [], [], [], {}
    tables: list[Table] = []
    for player in scale.players:
        check_two_players("balance", player)
    for player in scale.players:
        for simulations in scale.simulations:
            games = own_games(work, player, simulations=simulations, games=scale.games)
            name = f"{player}@{simulations}"
            first = openings.tree_of(games, depth=scale.opening_depth)
            found = balance_of(games, first, areas=areas_of(games))
            rules = rules_name(games)
            rows.append(_row(name, rules, found))
            tables.append(openings.table(first, title=f"Openings of {name}"))
            tables.append(opening_tree.table(first, title=f"The same as a tree, {name}"))
            pictures += openings.pictures(games, first, name=name)
            pictures += opening_tree.pictures(first, name=name)
            trees.append((name, rules, found))
            data[name] = {"rules": rules, **found._asdict(), "openings": openings.record(first)}
    heads = (
        "player against itself",
        "rules",
        "games",
        "Red wins",
        "95 %",
        "paper",
        "draws",
        "plies",
        "winner's share of cells",
        "winner's lead",
        "distinct setups",
        "commonest setup",
        "first eight plies unique",
    )
    main = Table("Balance", heads, tuple(rows))
    return Report(
        title="Balance and openings",
        text=_text(trees),
        tables=[main, *tables],
        pictures=pictures,
        data=data,
    )


def balance_of(games: OwnGames, tree: openings.Tree, *, areas: np.ndarray) -> Balance:
    """Count the games of two players.

    Args:
      games: finished ones.
      tree: of their openings.
      areas: int[G, 2], cells that each player owns at the end.
    """
    reward = games.rewards[:, 0]
    red = float((reward > 0).mean() + (reward == 0).mean() / 2)
    winner = np.where(reward[:, None] > 0, areas, areas[:, ::-1])[reward != 0]
    total = winner.sum(axis=1)
    won = winner[total > 0]
    first_eight = [record.actions[:8] for record in games.recorded.records]
    counts = {plies: first_eight.count(plies) for plies in set(first_eight)}
    unique = sum(counts[plies] == 1 for plies in first_eight) / len(first_eight)
    return Balance(
        games=len(reward),
        red=red,
        low=wilson_interval(red, len(reward))[0],
        high=wilson_interval(red, len(reward))[1],
        draws=float((reward == 0).mean()),
        plies=float(games.plies.mean()),
        share=float((won[:, 0] / won.sum(axis=1)).mean()) if len(won) else float("nan"),
        margin=float((won[:, 0] - won[:, 1]).mean()) if len(won) else float("nan"),
        setups=len(tree.setups),
        commonest=max(tree.setups.values()) / len(reward),
        eight=unique,
    )


def areas_of(games: OwnGames) -> np.ndarray:
    """int[G, 2]: cells that each player owns at the end."""
    owned = np.asarray(games.examples().outcome.owned)
    grid = games.rules.size
    return np.asarray(fetch(bitboard.to_mask(jnp.asarray(owned), grid))).sum(axis=-1)


def rules_name(games: OwnGames) -> str:
    """The preset that the games are played by, or their size in words."""
    from wallgo_jax.game.rules import PRESETS

    known = [name for name in PRESETS if named(name) == games.rules]
    return known[0] if known else f"{games.rules.size}×{games.rules.size}"


def _row(name: str, rules: str, found: Balance) -> tuple[str, ...]:
    paper = PAPER.get(rules)
    return (
        f"`{name}`",
        f"`{rules}`",
        f"{found.games:,}",
        percent(found.red, 2),
        percent_range(found.low, found.high, 2),
        "" if paper is None else f"{100 * paper:.2f} ± {100 * _PAPER_HALF:.2f} %",
        percent(found.draws, 2),
        f"{found.plies:.1f}",
        percent(found.share),
        f"{found.margin:.1f}",
        f"{found.setups:,}",
        percent(found.commonest),
        percent(found.eight),
    )


def _text(found: list[tuple[str, str, Balance]]) -> list[str]:
    lines = [
        "Games of a network against itself, each ply searched in full with Gumbel noise, from the "
        "rules' start. The intervals count games (Wilson); all games are of one training, so they "
        "say nothing of how far another seed's player would differ.",
    ]
    for name, rules, balance in found:
        paper = PAPER.get(rules)
        if paper is None:
            continue
        low, high = paper - _PAPER_HALF, paper + _PAPER_HALF
        agrees = balance.low <= high and low <= balance.high
        lines.append(
            f"`{name}` on `{rules}`: Red's interval and the paper's "
            f"{'overlap' if agrees else 'do not overlap'}."
        )
    return lines
