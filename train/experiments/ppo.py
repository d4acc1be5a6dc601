"""Is search worth its time in training? Proximal policy optimization, which never searches, against
the config's own training, with the same network and about the same minutes.

A ply is drawn from the raw policy, and an iteration learns from its own plies alone: the clipped
gain of Schulman et al., "Proximal Policy Optimization Algorithms" (2017), equation 7, with a bonus
for entropy; advantages are λ-returns less the network's value (Schulman et al., "High-Dimensional
Continuous Control Using Generalized Advantage Estimation", 2016), scaled to mean 0 and deviation 1.
If a player moves twice in a row, the sign of the returns does not change between the two moves.

Variants may begin games in the middle (`selfplay.opening_plies`) and may play an older policy,
drawn from a pool, on one of the two sides; from its plies only values are learned. Owners of cells
are not learned.

B boards, T plies, N positions, A slots.
"""

import dataclasses
import functools
import hashlib
import json
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import train
from train.checkpoints.exported import write_model
from train.config import RunConfig, config_to_dict
from train.data.best_slots import all_on
from train.data.replay import Sample, Trajectory
from train.data.selfplay import Boards, first_boards, make_selfplay, stagger
from train.experiments import lab
from train.experiments.tables import Table
from train.functions import tell
from train.learning.learner import LearnerState, check_finite, make_learner
from train.learning.losses import TrainingTargets
from train.loop.programs import first_key
from train.loop.tables import variants_of
from train.network import Output, network_for, observer_for, slot_logits
from train.runtime.host import fetch
from train.search.evaluator import Evaluator, WithOpponentVariables, evaluator_for
from train.search.search import Search, SearchResult
from wallgo_jax.game.state import State

SEARCHING = "searching"
"""The variant that trains as the config says."""
PLAIN = {
    "learner.symmetry": False,
    "learner.value_mix": 1.0,
    "learner.td_steps": 0,
    "learner.weights.policy": 0.0,
    "learner.weights.ownership": 0.0,
    "selfplay.temperature": 0.0,
    "selfplay.opponent": "",
    "selfplay.setup_prob": 0.0,
    "selfplay.opening_prob": 0.0,
}
"""Keys of the config without search: no turn and no temperature changes the chance of a slot, and
values learn returns."""
MIDDLE = {
    "selfplay.opening_prob": 0.5,
    "selfplay.random_opening_prob": 1.0,
}
"""Half of the games begin in the middle."""
_STAGGER = 48
"""The most random plies of a board before the first iteration, about a game."""
_NEWEST = 0.5
"""Chance that the opponent of a variant with a pool has the weights that learn."""


class Options(NamedTuple):
    """What decides a training besides its config, see `Scale`."""

    iterations: int
    epochs: int
    clip: float
    entropy: float
    trace: float
    pool_every: int


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    seeds: int = 3
    """Trainings of each kind."""
    config: str | None = None
    """TOML file of the run that searches; the quickstart by default."""
    searching_iterations: int = 20
    """Iterations of the training that searches."""
    iterations: int = 40
    """Iterations of those without search, for about the same minutes."""
    epochs: int = 2
    """Times that steps learn from each ply."""
    clip: float = 0.2
    """Of the ratio of chances, from 1."""
    entropy: float = 0.01
    """Weight of its bonus."""
    trace: float = 0.8
    """λ of the returns."""
    middle_plies: int = 24
    """Most random plies of the games that begin in the middle."""
    pool_every: int = 5
    """Iterations from one policy of the pool to the next."""
    games: int = 400
    """Games of each match."""
    simulations: int = 64
    opening_plies: int = 4


def main(work: lab.Lab) -> dict[str, Any]:
    """Train by search and without it, and match raw policies and searches."""
    scale = work.scale
    base = train.make_config(scale.config, iterations=scale.searching_iterations)
    plain = train.make_config(base, PLAIN)
    middle = {**MIDDLE, "selfplay.opening_plies": scale.middle_plies}
    shared = {key: getattr(scale, key) for key in Options._fields[:-1]}
    pool = Options(**shared, pool_every=scale.pool_every)
    ways = {
        "plain": (plain, pool._replace(pool_every=0)),
        "middle": (train.make_config(plain, middle), pool._replace(pool_every=0)),
        "pool": (plain, pool),
    }
    trained = work.train_all({SEARCHING: base}, scale.seeds)
    for name, (config, options) in ways.items():
        trained[name] = [_train(work, name, config, options, n) for n in range(scale.seeds)]
    rows = []
    match = {"games": scale.games, "opening_plies": scale.opening_plies, "seed": scale.seed}
    for name, runs in trained.items():
        row: dict[str, Any] = {"training": name, "games": int(np.mean([x["games"] for x in runs]))}
        row["minutes"] = round(float(np.mean([run["minutes"] for run in runs])), 1)
        for kind, simulations in (("raw", 0), ("searching", scale.simulations)):
            pairs = zip(runs, trained[SEARCHING], strict=True) if name != SEARCHING else ()
            players = [[lab.player_of(run, simulations) for run in pair] for pair in pairs]
            if met := [work.match(*pair, **match) for pair in players]:
                row[kind] = {key: [each[key] for each in met] for key in met[0]}
        rows.append(row)
    columns = [["training", "training"], ["minutes", "minutes"], ["games", "games"]]
    columns += [["raw policies, % won against search", "raw"]]
    columns += [[f"{scale.simulations} simulations", "searching"]]
    table = Table(f"Against {SEARCHING}", columns, rows)
    return work.finish({"table": table}, trainings=trained)


def _train(
    work: lab.Lab, name: str, config: RunConfig, options: Options, seed: int
) -> dict[str, Any]:
    """Train with a seed, unless that is done; the folder is an exported network."""
    config = dataclasses.replace(config, seed=seed)
    key = {"config": config_to_dict(config), "ppo": options._asdict()}
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:6]
    folder = work.runs / f"{name}-{digest}-seed{seed}"

    def make() -> dict[str, Any]:
        state, figures = learn_config(config, options, seed)
        write_model(folder, state.weights, config, {"seed": seed, "ppo": options._asdict()})
        jax.clear_caches()
        return figures

    return {**work.keep("ppo-trainings", key, make), "run": str(folder)}


def learn_config(
    config: RunConfig, options: Options, seed: int
) -> tuple[LearnerState, dict[str, Any]]:
    """Train from random weights; returns the learner's last state, and `minutes` without compiling,
    `compile_seconds`, `games` and `positions`."""
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
    compile_seconds = time.perf_counter() - began
    games = 0
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
    return state, {
        "minutes": (time.perf_counter() - began) / 60,
        "compile_seconds": compile_seconds,
        "games": games,
        "positions": options.iterations * programs.positions,
    }


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
        place = plies.slot[..., None].astype(jnp.int32)
        chance = jnp.take_along_axis(plies.policy, place, axis=-1)
        # A slot may be drawn whose chance is below float16's least.
        chance = jnp.maximum(chance, jnp.finfo(chance.dtype).smallest_subnormal)
        sample = Sample(
            variant=jax.tree.map(lambda x: jnp.broadcast_to(x, (len(returns), *x.shape)), variant),
            position=plies.position,
            policy=all_on(plies.slot)._replace(share=chance),
            policy_weight=advantages(plies, returns),
            root_value=returns,
            outcome=plies.outcome,
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
    reward = jnp.take_along_axis(plies.outcome.rewards, place, axis=-1)[..., 0]
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


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
