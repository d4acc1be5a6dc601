"""Can it be exploited: adversaries trained against frozen victims, and what the victims misjudge.

An adversary is trained by self-play in which a frozen victim has one of the two sides
(`selfplay.opponent`); its search follows the victim's raw policy where the victim is to move. In
the matches, too. After Wang et al., "Adversarial Policies Beat Superhuman Go AIs" (2023).

N positions, G games.
"""

import functools
import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.match import MatchOptions, play_meeting
from train.config import RunConfig, config_from_dict, config_to_dict
from train.data.record_dataset import Examples, RecordedGames, make_examples, take
from train.learning.losses import make_targets, ownership_errors
from train.metrics.rows import METRICS_FILE, read_rows
from train.network.build import network_for, observer_for
from train.players.names import read_network_name
from train.players.registry import (
    load_network,
    make_frozen_opponent,
    make_modelling_player,
    make_player,
    network_config,
)
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.study.frame.means import Mean, by_game, mean_of
from train.study.frame.report import Picture, Report, Table, percent, percent_range
from train.study.frame.seeds import Estimate, count_of, estimate, interval_kind
from train.study.frame.variants import (
    Trained,
    Variant,
    kept_iterations,
    runs_of,
    settings_of,
    train_all,
)
from train.study.frame.weights import made_by, named_weights
from train.study.frame.work import Work
from train.study.scale.trainings import AdversaryConfig
from train.study.trainings.blocks import block_variants
from train.study.trainings.features import base_config
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules

PAPER = {"10R": (0.7044, 2.58413), "R3(RRT)": (0.2391, 1.06763)}
"""Being attacked rate and mean squared error of the board evaluation ("ResTNet", Wu, Wu, Shih, Ju,
Wu, Table 2)."""
_BATCH, _POSITIONS = 200, 256


class Victim(NamedTuple):
    """A frozen player; `{seed}` in its name stands for the seed of the adversary."""

    name: str  # in tables and files
    player: str  # with its budget
    rules: Rules
    made_by: Any  # what decides its weights, JSON-ready


class Played(NamedTuple):
    """Games of a match, for the first player."""

    games: list[list[int]]  # public actions
    outcomes: list[int]  # 1 won, 0 drawn, -1 lost
    is_red: list[bool]

    @property
    def counts(self) -> list[int]:
        """Games won, drawn, lost."""
        return [self.outcomes.count(outcome) for outcome in (1, 0, -1)]

    @property
    def rate(self) -> float:
        """The win rate, draws as half."""
        return (sum(self.outcomes) / len(self.outcomes) + 1) / 2

    def records(self, rules: Rules, *, only: int | None = None) -> list[Record]:
        """The games, or those of one outcome."""
        found = []
        for actions, outcome, is_red in zip(*self, strict=True):
            if only in (None, outcome):
                red = float(outcome if is_red else -outcome)
                found.append(Record(rules=rules, actions=tuple(actions), result=(red, -red)))
        return found


class Errors(NamedTuple):
    """The victim's error of the expected owner, a mean for each game over the second half of its
    plies; empty without an ownership head."""

    lost: list[float]  # games that the adversary won
    normal: list[float]  # games of the victim against itself


class Attack(NamedTuple):
    """All attacks on a victim; each list has an entry a seed."""

    victim: Victim
    trained: list[Trained]
    matches: dict[int, list[Played]]  # after so many iterations
    normal: list[Played]  # the victim against itself
    selfplay: list[list[float | None]]  # the adversary's win rate in each iteration's own games
    errors: list[Errors]

    @property
    def rates(self) -> dict[int, Estimate]:
        """The attack rate after so many iterations."""
        return {
            iterations: estimate([each.rate for each in played], len(played[0].outcomes))
            for iterations, played in self.matches.items()
        }

    def error(self, kind: str) -> Mean:
        """The mean of an entry of `Errors`, over seeds; over the games of one seed."""
        by_seed = [np.array(getattr(errors, kind)) for errors in self.errors]
        known = [games for games in by_seed if len(games)]
        if len(known) > 1:
            return mean_of(np.array([games.mean() for games in known]))
        return mean_of(known[0] if known else np.zeros(0))


def report(work: Work) -> Report:
    """Train an adversary against each victim with each seed, and let them meet."""
    scale = work.scale.adversary
    base = base_config(scale, where="study adversary: config")
    found = [_attack(work, scale, base, victim) for victim in _victims(work, scale)]
    return Report(
        title="Adversaries of frozen victims",
        text=_text(scale, found),
        tables=[_table(found), _curve_table(found)],
        pictures=[_picture(found)],
        data={"attacks": {each.victim.name: _data(each) for each in found}, "paper": PAPER},
    )


def _victims(work: Work, scale: AdversaryConfig) -> list[Victim]:
    """The trainings of the topic `blocks`, then the victims that are named."""
    found, budget = [], f"@{scale.victim_simulations}"
    named = [_named(text, budget) for text in scale.victims]
    variants = block_variants(work.scale.blocks, scale.blocks)
    for variant in variants:
        player = f"search:{runs_of(work) / variant.name}-seed{{seed}}{budget}"
        found.append(Victim(variant.name, player, variant.config.rules, settings_of(variant, 0)))
    found += named
    if len({victim.name for victim in found}) < len(found):
        raise UsageError("study adversary: two victims have the same name")
    for victim in found:
        if victim.rules.players != 2:
            raise UsageError(f"study adversary: {victim.name}: victims play games of two players")
    if variants:
        train_all(work, variants, seeds=scale.seeds)
    return found


def _named(text: str, budget: str) -> Victim:
    read = read_network_name(text)
    if read.has_budget:
        raise UsageError(f"study: player {text!r}: name a network without simulations")
    if read.kind == "net":
        raise UsageError(f"study: player {text!r}: name a network that searches")
    name = Path(read.target.rpartition(":")[2]).name
    return Victim(name, f"{text}{budget}", network_config(read).rules, made_by(load_network(text)))


def _attack(work: Work, scale: AdversaryConfig, base: RunConfig, victim: Victim) -> Attack:
    variant = _variant(base, victim)
    trained = train_all(work, [variant], seeds=scale.seeds)[variant.name]
    found = Attack(victim, trained, {}, [], [], [])
    keys = "games", "simulations", "victim_simulations", "opening_plies"
    settings = {"seed": work.scale.seed} | {key: getattr(scale, key) for key in keys}

    def keep(name: str, known_by: Any, make: Callable[..., Any], *given: Any) -> Any:
        return work.pieces.keep(
            name, settings | {"made_by": known_by}, functools.partial(make, *given)
        )

    for seed, run in enumerate(trained):
        player = victim.player.replace("{seed}", str(seed))
        directory = runs_of(work) / run.run
        known_by = settings_of(variant, seed)
        for iterations in kept_iterations(variant.config.iterations):
            adversary = f"{directory}/checkpoints/{iterations}"
            name = f"attack-{victim.name}-{seed}-{iterations}"
            who = work, scale, victim, adversary, player
            kept = keep(name, [known_by, player, iterations], _play, *who)
            found.matches.setdefault(iterations, []).append(Played(*kept))
        who = work, scale, victim, "", player
        kept = keep(f"normal-{victim.name}-{seed}", [victim.made_by, player], _play, *who)
        found.normal.append(Played(*kept))
        name = f"selfplay-{victim.name}-{seed}"
        found.selfplay.append(keep(name, known_by, _selfplay_rates, directory))
        ends = found.matches[max(found.matches)][-1], found.normal[-1]
        name, given = f"ownership-{victim.name}-{seed}", (player, victim.rules, *ends)
        found.errors.append(Errors(*keep(name, [known_by, player], _errors_of, *given)))
    return found


def _selfplay_rates(run: Path) -> list[float | None]:
    """The adversary's win rate in the games of each iteration."""
    return [row.get("learner_win_rate") for row in read_rows(run / METRICS_FILE)]


def _variant(base: RunConfig, victim: Victim) -> Variant:
    """The training of an adversary."""
    fields = config_to_dict(base) | {"rules": victim.rules.to_dict()}
    fields["selfplay"] |= {"opponent": victim.player}
    config = config_from_dict(fields, where="study adversary")
    others = named_weights(base)
    known_by = [victim.made_by, others] if others else victim.made_by
    return Variant(f"adversary-{victim.name}", config, keeps_all=True, made_by=known_by)


def _play(
    work: Work, scale: AdversaryConfig, victim: Victim, adversary: str, player: str
) -> list[Any]:
    """A match of an adversary, or of the victim itself where there is none, against the victim."""
    own = theirs = make_player(player, victim.rules)
    if adversary:
        opponent = make_frozen_opponent(player, victim.rules)
        trained = load_network(adversary)
        own = make_modelling_player(adversary, trained, opponent, simulations=scale.simulations)
    options = MatchOptions(scale.games, min(scale.games, _BATCH), scale.opening_plies)
    title = f"{adversary or player} against {player}"
    with work.task(title, scale.games, "games") as on_progress:
        result = play_meeting(
            (own, theirs),
            victim.rules,
            options,
            seed=work.scale.seed,
            before=0,
            on_progress=on_progress,
        )
    games = [[int(action) for action in game] for game in result.games]
    outcomes = [int(outcome) for outcome in result.outcome]
    return [games, outcomes, [bool(is_red) for is_red in result.first_is_red]]


def _errors_of(player: str, rules: Rules, attacks: Played, normal: Played) -> list[list[float]]:
    """The victim's `Errors` in the games that an adversary won, and in its games against itself."""
    return [
        ownership_error_by_game(player, rules, attacks.records(rules, only=1)),
        ownership_error_by_game(player, rules, normal.records(rules)),
    ]


def ownership_error_by_game(player: str, rules: Rules, records: Sequence[Record]) -> list[float]:
    """The squared error of a network's expected owner of a cell, the mean over cells and over the
    second half of each game's plies; empty where it has no ownership head or there is no game."""
    trained = load_network(player)
    config = trained.config.network
    if not config.ownership or not records:
        return []
    places = tuple(f"game {number}" for number in range(1, len(records) + 1))
    examples = make_examples(RecordedGames(tuple(records), places))
    network, observe = network_for(config, rules.players), observer_for(config)

    @jax.jit
    def errors_at(variables: Any, examples: Examples, index: jax.Array) -> jax.Array:
        sample = take(examples, index, has_reply=False)
        targets = make_targets(sample, jnp.zeros(index.shape, jnp.int32))
        planes = jax.vmap(lambda state: observe(state, None))(targets.states)
        logits = network.evaluate(variables, planes).ownership
        assert logits is not None
        return ownership_errors(logits, targets)

    game, ply = fetch((examples.game, examples.position.ply))
    count, parts = len(game), []
    for first in range(0, count, _POSITIONS):
        # The first positions again fill the last batch, so that one program serves all batches.
        index = jnp.asarray((first + np.arange(_POSITIONS)) % count)
        parts.append(errors_at(trained.variables, examples, index))
    errors = np.concatenate(fetch(parts))[:count]
    is_late = 2 * ply >= np.bincount(game)[game]
    return by_game(errors[is_late], game[is_late], len(records)).tolist()


def _data(attack: Attack) -> dict[str, Any]:
    return {
        "wins": {
            iterations: [each.counts for each in played]
            for iterations, played in attack.matches.items()
        },
        "selfplay": attack.selfplay,
        "ownership_errors": [errors._asdict() for errors in attack.errors],
        "seconds": [run.seconds for run in attack.trained],
    }


def _table(found: Sequence[Attack]) -> Table:
    rows = []
    for attack in found:
        iterations, last = list(attack.rates.items())[-1]
        errors = [attack.error(kind) for kind in Errors._fields]
        minutes = statistics.fmean(run.seconds for run in attack.trained) / 60
        rows.append(
            (
                f"`{attack.victim.name}`",
                percent(last.mean),
                percent_range(last.low, last.high),
                *(each.text() if math.isfinite(each.value) else "" for each in errors),
                str(iterations),
                f"{minutes:.1f}",
            )
        )
    rows += [
        (f"paper: `{name}`", percent(rate, 2), "", f"{error:.3f}", "", "", "")
        for name, (rate, error) in PAPER.items()
    ]
    heads = (
        "victim",
        "attack rate",
        "95 %",
        "ownership error, lost games",
        "against itself",
        "iterations",
        "minutes",
    )
    return Table("Victims at the end of the attack", heads, tuple(rows))


def _curve_table(found: Sequence[Attack]) -> Table:
    rows = [
        (
            f"`{attack.victim.name}`",
            str(iterations),
            percent(rate.mean),
            percent_range(rate.low, rate.high),
        )
        for attack in found
        for iterations, rate in attack.rates.items()
    ]
    heads = ("victim", "iterations", "attack rate", "95 %")
    return Table("Attack rate over training", heads, tuple(rows))


def _text(scale: AdversaryConfig, found: Sequence[Attack]) -> list[str]:
    what = interval_kind(scale.seeds) if scale.seeds > 1 else "Wilson's or Student's over games"
    lines = [
        f"An adversary was trained against each frozen victim with {count_of(scale.seeds)}. The "
        f"victim searches {scale.victim_simulations} simulations, the adversary "
        f"{scale.simulations} in matches, with the victim's raw policy for the victim's moves in "
        f"its tree. Each match has {scale.games} games from {scale.opening_plies} random plies. "
        f"The attack rate is the adversary's win rate, draws as half; intervals are {what}.",
        "The ownership error is the squared error of the victim's expected owner of a cell (1 own, "
        "-1 the other's, 0 nobody's), over the second half of a game's plies: in the games that it "
        "lost to the adversary, and in games against itself at the same budget.",
        "The paper plays a program made to attack KataGo, from 24 positions of 19×19 Go, against "
        "networks that it was not trained against, and measures the error on stones that the "
        "attack is about. Here each victim has an adversary of its own, and the error is that of "
        "all cells: compare what blocks change, not the figures.",
    ]
    lines += [_difference(*pair) for pair in itertools.pairwise(found)] if scale.seeds > 1 else []
    return lines


def _difference(one: Attack, other: Attack) -> str:
    """How far the attack rates of two victims are apart, seed by seed."""
    rates = [[played.rate for played in each.matches[max(each.matches)]] for each in (one, other)]
    gap = mean_of(100 * (np.array(rates[1]) - np.array(rates[0])))
    word = "open" if gap.low <= 0 <= gap.high else "clear"
    return (
        f"`{other.victim.name}` is beaten {gap.value:+.1f} points more often than "
        f"`{one.victim.name}` ({gap.low:+.1f} to {gap.high:+.1f}), which is {word} at 95 %."
    )


def _picture(found: Sequence[Attack]) -> Picture:
    from train.metrics.plot_style import COLOURS, MARKS, new_plot

    figure, axes = new_plot(
        title="Attack rate over training",
        x_label="iterations of the adversary",
        y_label="adversary's win rate",
    )
    for place, attack in enumerate(found):
        rates = attack.rates
        steps, colour = list(rates), COLOURS[place % len(COLOURS)]
        low, high = ([getattr(each, end) for each in rates.values()] for end in ("low", "high"))
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        marks = {"marker": MARKS[place % len(MARKS)], "markersize": 5}
        means = [each.mean for each in rates.values()]
        axes.plot(steps, means, color=colour, label=attack.victim.name, **marks)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.legend(frameon=False)
    return Picture("attack", "bands: 95 % intervals", figure)
