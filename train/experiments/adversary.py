"""Can it be exploited? Adversaries trained against frozen victims, and what the victims misjudge.

An adversary is trained by self-play in which a frozen victim has one of the two sides
(`selfplay.opponent`); its search follows the victim's raw policy where the victim is to move, also
in the matches. After Wang et al., "Adversarial Policies Beat Superhuman Go AIs" (2023). The attack
rate is the adversary's win rate, draws as half.

The adversary's search alone may win: it has more simulations and knows the victim's policy. So an
untrained copy of the victim, its weights with the adversary's search, plays the victim too, and
both also play at the victim's simulations. An attack is what training adds to the untrained copy.

Intervals are over seeds; those of one seed count its games. The ownership error is the squared
error of the victim's expected owner of a cell (1 own, -1 the other's, 0 nobody's), over the second
half of a game's plies: in the games that it lost to the adversary, and in games against itself at
the same budget.

The paper plays a program made to attack KataGo, from 24 positions of 19×19 Go, against networks
that it was not trained against, and measures the error on stones that the attack is about. Here
each victim has an adversary of its own, and the error is that of all cells: compare what blocks
change, not the figures.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.checkpoints.weights import TrainedNetwork
from train.config import RunConfig, written_values
from train.data.record_dataset import Examples, RecordedGames, make_examples, take
from train.experiments.blocks import block_variants
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.stats import Estimate
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work, check_network, play_games
from train.learning.losses import make_targets, ownership_errors
from train.metrics.intervals import Curve, curves_figure
from train.metrics.rows import METRICS_FILE, read_rows
from train.network import network_for, observer_for
from train.players.names import check_without_budget, read_network_name
from train.players.networks import load_network, network_config
from train.players.registry import make_frozen_opponent, make_player
from train.players.searching import network_player
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.host import fetch, in_batches
from train.search.config import SearchConfig
from train.search.evaluator import WithOpponentVariables
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules

PAPER = {"10R": (0.7044, 2.58413), "R3(RRT)": (0.2391, 1.06763)}
"""Being attacked rate and mean squared error of the board evaluation ("ResTNet", Wu, Wu, Shih, Ju,
Wu, Table 2)."""
_POSITIONS = 256


class Victim(NamedTuple):
    """A frozen player; `{seed}` in its name stands for the seed of the adversary."""

    name: str  # in tables and files
    player: str  # with its budget
    rules: Rules
    made_by: Any  # what decides its weights, JSON-ready


class PlayedMatch(NamedTuple):
    """Games of a match, for the first player."""

    games: list[list[int]]  # public actions
    outcomes: list[int]  # 1 won, 0 drawn, -1 lost
    is_red: list[bool]
    openings: list[int]  # the number of each game's opening, which two games share

    @property
    def counts(self) -> list[int]:
        """Games won, drawn, lost."""
        return [self.outcomes.count(outcome) for outcome in (1, 0, -1)]

    @property
    def rate(self) -> float:
        """The win rate, draws as half."""
        return (sum(self.outcomes) / len(self.outcomes) + 1) / 2

    @property
    def by_opening(self) -> list[float]:
        """The win rate in the two games of each opening."""
        points, opening = (np.array(self.outcomes) + 1) / 2, np.array(self.openings)
        return stats.by_game(points, opening, int(opening.max()) + 1).tolist()

    def records(self, rules: Rules, *, only: int | None = None) -> list[Record]:
        """The games, or those of one outcome."""
        return [
            Record(rules=rules, actions=tuple(actions), result=(float(red), -float(red)))
            for actions, outcome, is_red in zip(*self[:3], strict=True)
            if only in (None, outcome)
            for red in [outcome if is_red else -outcome]
        ]


class Errors(NamedTuple):
    """The victim's error of the expected owner, a mean for each game over the second half of its
    plies; empty without an ownership head."""

    lost: list[float]  # games that the adversary won
    normal: list[float]  # games of the victim against itself


class Attack(NamedTuple):
    """All attacks on a victim; each list has an entry a seed."""

    victim: Victim
    trained: list[Trained]
    matches: dict[tuple[int, int], list[PlayedMatch]]
    """By iterations of the attacker's training, 0 for the untrained copy, and its simulations."""
    selfplay: list[list[float | None]]  # the adversary's win rate in each iteration's games
    errors: list[Errors]

    @property
    def last(self) -> int:
        """Iterations of the whole training."""
        return max(iterations for iterations, _ in self.matches)

    def rate(self, iterations: int, simulations: int) -> Estimate:
        """The attacker's win rate over seeds, or over the games of one seed."""
        played = self.matches[iterations, simulations]
        return stats.over_seeds([each.rate for each in played], len(played[0].outcomes))

    def gain(self, simulations: int) -> Estimate:
        """What training adds to the untrained copy's win rate at these simulations, over seeds."""
        ends = (self.matches[iterations, simulations] for iterations in (self.last, 0))
        return stats.mean_gap(*([match.rate for match in played] for played in ends))

    def error(self, kind: str) -> Estimate:
        """The mean of an entry of `Errors`, over seeds; over the games of one seed."""
        by_seed = [np.array(getattr(errors, kind)) for errors in self.errors]
        known = [games for games in by_seed if len(games)]
        if len(known) > 1:
            return stats.over_games(np.array([games.mean() for games in known]))
        return stats.over_games(known[0] if known else np.zeros(0))

    def record(self) -> dict[str, Any]:
        """The figures as JSON."""
        matches = [
            {
                "iterations": iterations,
                "simulations": simulations,
                "wins": [each.counts for each in played],
                "win_rate_by_opening": [each.by_opening for each in played],
            }
            for (iterations, simulations), played in self.matches.items()
        ]
        others = {"selfplay": self.selfplay, "ownership_errors": self.errors}
        return {"matches": matches} | others


def report(work: Work) -> Report:
    """Train an adversary against each victim with each seed, and match them."""
    scale = work.scale.adversary
    base = trainings.base_config(scale, where="adversary: config")
    attacks = [_attack(work, base, victim) for victim in _victims(work)]
    pairs = itertools.pairwise(attacks) if scale.seeds > 1 else ()
    gaps = [gap_line(*pair, simulations=scale.simulations) for pair in pairs]
    curves = []
    for attack in attacks:
        numbers = sorted(iterations for iterations, _ in attack.matches if iterations)
        points = {number: attack.rate(number, scale.simulations) for number in numbers}
        curves.append(Curve(attack.victim.name, points))
    figure = curves_figure(
        curves,
        title="Attack rate over training",
        x_label="iterations of the adversary",
        y_label="adversary's win rate",
        is_share=True,
    )
    return Report(
        title="Adversaries of frozen victims",
        text=gaps,
        tables=[_table(attacks, scale.simulations), end_table(attacks)],
        pictures=[Picture("attack", "bands: 95 % intervals", figure)],
        data={"attacks": {each.victim.name: each.record() for each in attacks}, "paper": PAPER},
    )


def _victims(work: Work) -> list[Victim]:
    """The trainings of the experiment `blocks`, then the victims that are named."""
    scale = work.scale.adversary
    budget = f"@{scale.victim_simulations}"
    variants = block_variants(work.scale.blocks, scale.blocks)
    victims = [
        Victim(
            variant.name,
            f"search:{work.runs / variant.run_name('{seed}')}{budget}",
            variant.config.rules,
            variant.settings(0),
        )
        for variant in variants
    ]
    victims += [named_victim(text, budget) for text in scale.victims]
    if len({victim.name for victim in victims}) < len(victims):
        raise UsageError("adversary: two victims have the same name")
    trainings.train_all(work, variants, seeds=scale.seeds)
    return victims


def named_victim(text: str, budget: str) -> Victim:
    """A victim by the name of its player."""
    read = read_network_name(text)
    check_without_budget(read, searches=True)
    check_network(text)
    name = Path(read.target.rpartition(":")[2]).name
    made_by = trainings.weights_of(load_network(text))
    return Victim(name, f"{text}{budget}", network_config(read).rules, made_by)


def _attack(work: Work, base: RunConfig, victim: Victim) -> Attack:
    """Train an adversary of a victim with each seed, and match both."""
    scale, others = work.scale.adversary, trainings.named_weights(base)
    changes = {"rules": victim.rules.to_dict(), "selfplay": {"opponent": victim.player}}
    config = trainings.changed_config(base, changes, where="adversary")
    made_by = [victim.made_by, others] if others else victim.made_by
    variant = Variant(f"adversary-{victim.name}", config, keeps_all=True, made_by=made_by)
    trained = trainings.train_all(work, [variant], seeds=scale.seeds)[variant.name]
    attack = Attack(victim, trained, {}, [], [])
    *numbers, last = variant.iterations
    budgets = dict.fromkeys((scale.simulations, scale.victim_simulations))
    attackers = [(number, scale.simulations) for number in numbers]
    attackers += itertools.product((last, 0), budgets)
    keys = "games", "simulations", "victim_simulations", "opening_plies"
    for seed, run in enumerate(trained):
        player, of_victim = victim.player.replace("{seed}", str(seed)), f"{victim.name}-{seed}"
        directory, known_by = work.runs / run.run, variant.settings(seed)
        settings = {"seed": work.seed} | {key: getattr(scale, key) for key in keys}
        settings |= {"victim": [player, victim.made_by], "fields": PlayedMatch._fields}

        def cached(piece: str, attacker: Any, make: Callable[..., Any], *given: Any) -> Any:
            how = settings | {"attacker": attacker}  # noqa: B023
            return work.cached(f"{piece}-{of_victim}", how, functools.partial(make, *given))  # noqa: B023

        for iterations, simulations in attackers:
            name = f"{directory}/checkpoints/{iterations}" if iterations else f"untrained {player}"
            copy = functools.partial(untrained_copy, player, config.search)
            load = functools.partial(load_network, name) if iterations else copy
            attacker = known_by if iterations else written_values(config.search)
            given = (work, victim.rules, player, name, load, simulations)
            match = cached(f"attack-{iterations}-{simulations}", attacker, _play, *given)
            attack.matches.setdefault((iterations, simulations), []).append(PlayedMatch(*match))
        normal = PlayedMatch(*cached("normal", None, _play, work, victim.rules, player))
        attack.selfplay.append(cached("selfplay", known_by, _selfplay_rates, directory))
        end = attack.matches[last, scale.simulations][-1]
        games = end.records(victim.rules, only=1), normal.records(victim.rules)
        errors = cached("ownership", known_by, _errors_of, player, *games)
        attack.errors.append(Errors(*errors))
    return attack


def _selfplay_rates(run: Path) -> list[float | None]:
    """The adversary's win rate in the games of each iteration."""
    return [row.get("learner_win_rate") for row in read_rows(run / METRICS_FILE)]


def untrained_copy(player: str, search: SearchConfig) -> TrainedNetwork:
    """A victim's weights with the options of an adversary's search."""
    trained = load_network(player)
    return trained._replace(config=dataclasses.replace(trained.config, search=search))


def _play(
    work: Work,
    rules: Rules,
    player: str,
    attacker: str = "",
    load: Callable[[], TrainedNetwork] | None = None,
    simulations: int = 0,
) -> list[Any]:
    """A match of an attacker, or of the victim itself where there is none, against the victim."""
    scale = work.scale.adversary
    first = second = make_player(player, rules)
    if load is not None:
        # It searches as its self-play does: the victim's moves in the tree follow its raw policy.
        opponent, trained = make_frozen_opponent(player, rules), load()
        variables = WithOpponentVariables(trained.variables, opponent.variables)
        how = {"simulations": simulations, "model": opponent.evaluate}
        first = network_player(attacker, variables, trained.config, trained.config.rules, **how)
        first = first._replace(trained=trained)
    sizes = {"games": scale.games, "opening_plies": scale.opening_plies}
    result = play_games(work, [first, second], rules, **sizes)
    arrays = (result.outcome, result.seats[:, 0] == 0, result.opening)
    return [[[*map(int, game)] for game in result.games], *(each.tolist() for each in arrays)]


def _errors_of(player: str, *games: Sequence[Record]) -> list[list[float]]:
    return [ownership_error_by_game(player, each) for each in games]


def ownership_error_by_game(player: str, records: Sequence[Record]) -> list[float]:
    """The squared error of a network's expected owner of a cell, the mean over cells and over the
    second half of each game's plies; empty where it has no ownership head or there is no game."""
    trained = load_network(player)
    config = trained.config.network
    if not config.ownership or not records:
        return []
    places = tuple(f"game {number}" for number in range(1, len(records) + 1))
    examples = make_examples(RecordedGames(tuple(records), places))
    network, observe = network_for(config, records[0].rules.players), observer_for(config)

    @jax.jit
    def errors_at(variables: Any, examples: Examples, index: jax.Array) -> tuple[jax.Array]:
        sample = take(examples, index, has_reply=False)
        targets = make_targets(sample, jnp.zeros(index.shape, jnp.int32))
        planes = jax.vmap(lambda state: observe(state, None))(targets.states)
        logits = network.evaluate(variables, planes).ownership
        assert logits is not None
        return (ownership_errors(logits, targets),)

    game, ply = fetch((examples.game, examples.position.ply))
    program = functools.partial(errors_at, trained.variables, examples)
    (errors,) = in_batches(program, np.arange(len(game)), _POSITIONS)
    is_late = 2 * ply >= np.bincount(game)[game]
    return stats.by_game(errors[is_late], game[is_late], len(records)).tolist()


def _table(attacks: Sequence[Attack], simulations: int) -> Table:
    rows = []
    for attack in attacks:
        rate = attack.rate(attack.last, simulations)
        errors = [attack.error(kind).text() for kind in Errors._fields]
        minutes, name = trainings.mean_minutes(attack.trained), f"`{attack.victim.name}`"
        rows.append([name, *rate.cells(), *errors, str(attack.last), minutes])
    rows += [
        [f"paper: `{name}`", stats.percent(rate, 2), "", f"{error:.3f}", "", "", ""]
        for name, (rate, error) in PAPER.items()
    ]
    heads = ["victim", "attack rate", "95 %", "ownership error, lost games", "against itself"]
    return Table("Victims at the end of the attack", [*heads, "iterations", "minutes"], rows)


def end_table(attacks: Sequence[Attack]) -> Table:
    """Trained adversaries beside the untrained copies."""
    rows = []
    for attack in attacks:
        for simulations in [number for iterations, number in attack.matches if not iterations]:
            ends = [attack.rate(iterations, simulations) for iterations in (attack.last, 0)]
            played = attack.matches[attack.last, simulations]
            rates = [rate for match in played for rate in match.by_opening]
            row = [f"`{attack.victim.name}`", str(simulations)]
            row += [*ends[0].cells(), *ends[1].cells(), attack.gain(simulations).points()]
            rows.append([*row, f"{rates.count(1.0)}, {rates.count(0.0)} of {len(rates)}"])
    heads = ["victim", "attacker's simulations", "attack rate", "95 %", "untrained copy", "95 %"]
    heads += ["added by training, points", "openings won with both colours, with none"]
    return Table("What training adds to the attacker's search", heads, rows)


def gap_line(one: Attack, other: Attack, *, simulations: int) -> str:
    """A sentence on the gap between the attack rates of two victims, seed by seed."""
    played = (each.matches[each.last, simulations] for each in (other, one))
    gap = stats.mean_gap(*([match.rate for match in matches] for matches in played))
    name, beside = other.victim.name, one.victim.name
    return f"`{name}` is beaten {gap.points()} points more often than `{beside}`."
