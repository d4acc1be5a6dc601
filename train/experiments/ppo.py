"""Is search worth its time in training? Proximal policy optimization, which never searches, against
the config's own training, both with one network and about equal minutes.

A ply is drawn from the raw policy, and an iteration learns from its own plies alone: the clipped
gain of Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equation 7, with a bonus
for entropy; advantages are λ-returns less the network's value (Schulman et al., "High-Dimensional
Continuous Control Using Generalized Advantage Estimation", 2016), scaled to mean 0 and deviation 1.
A player that moves twice running keeps the sign of its returns.

Variants may begin games in the middle (`selfplay.opening_plies`) and may play an older policy,
drawn from a pool, which has one of the two sides and teaches values alone. Nothing teaches owners.

B boards, T plies, N positions, A slots.
"""

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.checkpoints.exported import write_model
from train.config import RunConfig
from train.data.replay import Sample, Trajectory
from train.data.selfplay import Boards, first_boards, make_selfplay, stagger
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Report
from train.experiments.lib.scales import PpoScale, PpoVariant
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Task, Work
from train.functions import tell
from train.learning.learner import LearnerState, check_finite, make_learner
from train.learning.losses import TrainingTargets
from train.loop.programs import first_key
from train.loop.tables import variants_of
from train.network import Output, network_for, observer_for, slot_logits
from train.players.searching import RAW_POLICY
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.evaluator import Evaluator, WithOpponentVariables, evaluator_for
from train.search.search import Search, SearchResult
from wallgo_jax.game.state import State

SEARCHING = "searching"
"""The variant that trains as the config says."""
_SET = {
    "learner": {
        "symmetry": False,
        "value_mix": 1.0,
        "td_steps": 0,
        "weights": {"policy": 0.0, "ownership": 0.0},
    },
    "selfplay": {"temperature": 0.0, "opponent": ""},
}
"""Keys of the config: no turn and no temperature changes the chance of a slot, and values learn
returns."""
_STAGGER = 48
"""The most random plies of a board before the first iteration, about a game."""
_NEWEST = 0.5
"""Chance that the opponent of a variant with a pool has the weights that learn."""


class Options(NamedTuple):
    """What decides a training besides its config."""

    iterations: int
    epochs: int
    clip: float
    entropy: float
    trace: float
    pool_every: int


def report(work: Work) -> Report:
    """Train by search and without it, and match raw policies and searches."""
    scale, where = work.scale.ppo, "ppo: config"
    base = trainings.base_config(scale, where=where)
    ways = {each.name: _variant(base, scale, each) for each in scale.variants}
    searching = Variant(SEARCHING, base)
    trained = trainings.train_all(work, [searching], seeds=scale.seeds)
    for variant, options in ways.values():
        seeds = range(scale.seeds)
        trained[variant.name] = [_train(work, variant, options, seed) for seed in seeds]
    meetings: dict[str, list[MatchCounts]] = {}
    for kind, simulations in (("raw", RAW_POLICY), ("searching", scale.simulations)):
        budgets = dict.fromkeys(trained, simulations)
        meetings[kind] = [
            trainings.meet(work, (variant, searching), trained, seed, scale, simulations=budgets)
            for variant, _ in ways.values()
            for seed in range(scale.seeds)
        ]
    interval = stats.interval_head(scale.seeds)
    heads = ["training", "minutes", "games"]
    heads += [cell for kind in meetings for cell in (f"{kind}, % won", interval)]
    rows = []
    for name, runs in trained.items():
        games = f"{np.mean([run.games for run in runs]):,.0f}"
        cells = [cell for each in meetings.values() for cell in _against(each, name)]
        rows.append([name, trainings.mean_minutes(runs), games, *cells])
    table = Table(f"Against {SEARCHING}", heads, rows)
    return Report("Training without search", [table], {"meetings": meetings, "trainings": trained})


def _against(meetings: Sequence[MatchCounts], name: str) -> tuple[str, str]:
    """Two cells: what a variant wins against the one that searches."""
    met = [each for each in meetings if each.first == name]
    return stats.mean_rate(met, name).cells() if met else ("", "")


def _variant(base: RunConfig, scale: PpoScale, each: PpoVariant) -> tuple[Variant, Options]:
    """A variant of the scale, and what decides its training besides its config."""
    config = base
    for changes in (scale.changes, each.config, _SET):
        config = trainings.changed_config(config, changes, where=f"ppo: {each.name}")
    plies, batch = config.selfplay.boards * config.selfplay.plies, config.learner.batch
    if batch > plies:
        raise UsageError(
            f"ppo: {each.name}: learner.batch ({batch}) must be at most the positions of an "
            f"iteration ({plies})"
        )
    shared = {key: getattr(scale, key) for key in Options._fields[:-1]}
    options = Options(**shared, pool_every=each.pool_every)
    return Variant(each.name, config, made_by=options._asdict()), options


def _train(work: Work, variant: Variant, options: Options, seed: int) -> Trained:
    """Train a variant with a seed, unless that is finished; its folder is an exported network."""
    config = variant.run_config(seed)

    def train() -> list[Any]:
        with work.task(f"training {config.name}", options.iterations, "iterations") as on_progress:
            state, figures = _learn(config, options, seed, on_progress)
        about = {"seed": seed, "ppo": options._asdict()}
        write_model(work.runs / config.name, state.weights, config, about)
        jax.clear_caches()
        return [config.name, options.iterations, *figures, []]

    return Trained(*work.cached(f"training-{config.name}", variant.settings(seed), train))


def _learn(
    config: RunConfig, options: Options, seed: int, on_progress: Task
) -> tuple[LearnerState, list[float]]:
    """Train from random weights; returns the learner's last state and seconds without compiling,
    seconds of compiling, games and positions."""
    programs = Programs(config, options)
    key, rng = jax.random.key(seed), np.random.default_rng(seed)
    state, boards = programs.first(seed)
    pool = [fetch(state.variables)]
    began = time.perf_counter()
    play = jax.jit(programs.play, donate_argnums=2)
    play = play.lower(state.variables, state.variables, boards, key).compile()
    like = jax.eval_shape(programs.play, state.variables, state.variables, boards, key)[1]
    places = jax.ShapeDtypeStruct((config.learner.batch,), jnp.int32)
    learn = jax.jit(programs.learn, donate_argnums=0).lower(state, like, places, key).compile()
    compile_seconds, games = time.perf_counter() - began, 0
    began = time.perf_counter()
    for iteration in range(options.iterations):
        play_key, learn_key = jax.random.split(jax.random.fold_in(key, iteration))
        opponent = state.variables
        if options.pool_every and rng.random() >= _NEWEST:
            opponent = jax.tree.map(jnp.asarray, pool[rng.integers(len(pool))])
        boards, samples, over = play(state.variables, opponent, boards, play_key)
        steps = []
        for place in programs.batches(rng):
            state, metrics = learn(state, samples, place, learn_key)
            steps.append(metrics)
        check_finite(fetch(steps), state, iteration)
        games += int(over)
        if options.pool_every and (iteration + 1) % options.pool_every == 0:
            pool.append(fetch(state.variables))
        on_progress(iteration + 1)
    seconds = time.perf_counter() - began
    return state, [seconds, compile_seconds, games, options.iterations * programs.positions]


class Programs:
    """The functions of an iteration, to be jitted: its plies and, one by one, its steps."""

    def __init__(self, config: RunConfig, options: Options) -> None:
        self.options, self._has_pool = options, options.pool_every > 0
        self._batch, self._variant = config.learner.batch, variants_of(config)
        self.positions = config.selfplay.boards * config.selfplay.plies
        loss = tell("learner.custom_loss", functools.partial(ppo_loss, options=options), name="ppo")
        learner = dataclasses.replace(config.learner, custom_loss=loss)
        self._network = network_for(config.network, 2, size=config.rules.size)
        self._learner = make_learner(
            self._network,
            learner,
            total_steps=options.iterations * options.epochs * (self.positions // self._batch),
            observe=observer_for(config.network),
        )
        self._evaluate = evaluator_for(config.network, config.rules)
        draw = draw_from(self._evaluate)
        own: Search = lambda both, states, key: draw(both.own, states, key)  # noqa: E731
        self._selfplay = make_selfplay(
            own if self._has_pool else draw,
            config.selfplay,
            has_root_value=True,
            opponent=draw if self._has_pool else None,
        )

    def first(self, seed: int) -> tuple[LearnerState, Boards]:
        """The random weights that a run of the seed begins with, and boards in games under way."""
        variant, key = jax.tree.map(jnp.asarray, self._variant), first_key(seed)
        boards = first_boards(variant, has_opponent=self._has_pool)
        boards = stagger(variant, boards, key, plies=_STAGGER)
        return self._learner.init(self._network.init(key)), boards

    def batches(self, rng: np.random.Generator) -> np.ndarray:
        """int32[S, batch]: the positions of each step, every one once an epoch."""
        order = [rng.permutation(self.positions) for _ in range(self.options.epochs)]
        whole = self.positions // self._batch * self._batch
        return np.stack(order)[:, :whole].reshape(-1, self._batch).astype(np.int32)

    def play(
        self, variables: Any, opponent: Any, boards: Boards, key: jax.Array
    ) -> tuple[Boards, Sample, jax.Array]:
        """Play T plies on boards [B].

        Returns:
          The boards as they stand, the plies as samples [N], N = T B, see `ppo_loss`, and how many
          games ended, int32.
        """
        variant = jax.tree.map(jnp.asarray, self._variant)
        both = WithOpponentVariables(variables, opponent) if self._has_pool else variables
        boards, plies, _ = self._selfplay(both, variant, boards, key)
        last = self._evaluate(variables, State(variant, boards.position)).value[:, 0]
        returns = lambda_returns(plies, last, boards.position.player, self.options.trace)
        # A slot may be drawn whose chance is below float16's least.
        chances = jnp.maximum(plies.policy, jnp.finfo(plies.policy.dtype).smallest_subnormal)
        sample = Sample(
            variant=jax.tree.map(lambda x: jnp.broadcast_to(x, (len(returns), *x.shape)), variant),
            position=plies.position,
            policy=chances * jax.nn.one_hot(plies.slot, chances.shape[-1], dtype=chances.dtype),
            policy_weight=advantages(plies, returns),
            root_value=returns,
            outcome=plies.step_outcome,
            reply=None,
        )
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), sample)
        return boards, flat, plies.terminated.sum(dtype=jnp.int32)

    def learn(
        self, state: LearnerState, samples: Sample, place: jax.Array, key: jax.Array
    ) -> tuple[LearnerState, Any]:
        """Take a step from the samples of some places int32[batch]."""
        return self._learner.update(state, jax.tree.map(lambda x: x[place], samples), key)


def draw_from(evaluate: Evaluator) -> Search:
    """A raw policy as a search, whose slots are drawn from it."""

    def draw(variables: Any, states: State, key: jax.Array) -> SearchResult:
        logits, values = evaluate(variables, states)
        slot, nothing = jax.random.categorical(key, logits), jnp.zeros(len(logits))
        policy = jax.nn.softmax(logits, axis=-1)
        return SearchResult(slot.astype(jnp.int32), policy, values[:, 0], nothing, logits)

    return draw


def lambda_returns(
    plies: Trajectory, last_value: jax.Array, last_player: jax.Array, trace: float
) -> jax.Array:
    """float32[T, B]: λ-returns, for the player to move at each ply of two players.

    Args:
      plies: [T, B]; where `root_value` is NaN, as at an opponent's plies, the return after it
        stands for the value.
      last_value: float32[B], of the positions after the last ply, for their player to move.
      last_player: int8[B], the player to move there.
      trace: λ, the share of the return in what a ply looks ahead to, the rest of which is the
        value.
    """
    player, values = plies.position.player, plies.root_value
    assert values is not None
    place = player[..., None].astype(jnp.int32)
    reward = jnp.take_along_axis(plies.step_outcome.rewards, place, axis=-1)[..., 0]
    next_player = jnp.concatenate([player[1:], last_player[None]])
    next_value = jnp.concatenate([values[1:], last_value[None]])
    sign = jnp.where(next_player == player, 1.0, -1.0)
    sign = jnp.where(plies.terminated, 0.0, sign)

    def back(after: jax.Array, ply: Any) -> tuple[jax.Array, jax.Array]:
        reward, sign, value = ply
        value = jnp.where(jnp.isnan(value), after, value)
        found = reward + sign * ((1 - trace) * value + trace * after)
        return found, found

    return jax.lax.scan(back, last_value, (reward, sign, next_value), reverse=True)[1]


def advantages(plies: Trajectory, returns: jax.Array) -> jax.Array:
    """float32[T, B]: returns less values, of mean 0 and deviation 1 over the plies whose policy is
    learned, 0 at the others."""
    learned, values = plies.policy_weight > 0, plies.root_value
    assert values is not None
    found = jnp.where(learned, returns - jnp.nan_to_num(values), 0.0)
    scaled = (found - found.mean(where=learned)) / (found.std(where=learned) + 1e-6)
    return jnp.where(learned, scaled, 0.0)


def ppo_loss(output: Output, targets: TrainingTargets, *, options: Options) -> jax.Array:
    """float32[]: minus the clipped gain and the bonus for entropy, means over samples [N].

    Args:
      output: of the network.
      targets: their policy holds the chance that the chosen slot had, 0 elsewhere, their policy
        weight its advantage, 0 for a ply that is not learned.
      options: of the training.
    """
    slot, before = targets.policy.argmax(axis=-1), targets.policy.max(axis=-1)
    logits = jax.vmap(slot_logits)(output.policy, targets.states, targets.legal)
    nats = jax.nn.log_softmax(logits, axis=-1)
    now = jnp.take_along_axis(nats, slot[:, None], axis=-1)[:, 0]
    ratio = jnp.exp(now) / before
    clipped = jnp.clip(ratio, 1 - options.clip, 1 + options.clip)
    gain = jnp.minimum(ratio * targets.policy_weight, clipped * targets.policy_weight)
    entropy = -(jnp.exp(nats) * jnp.where(targets.legal, nats, 0.0)).sum(axis=-1)
    return -(gain + options.entropy * entropy).mean()
