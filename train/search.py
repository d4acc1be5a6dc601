"""Search over the exact game, in slots; the only file that knows mctx.

Two kinds. `gumbel`: after Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning
with Gumbel" (ICLR 2022). `puct`: after Silver et al., "A general reinforcement learning algorithm
that masters chess, shogi, and Go through self-play" (Science, 2018), in mctx's form. The tree holds
positions, not observations or public masks: planes and legal slots are worked out when a node is
made, and the variant, the same at every node, stays outside.

The tree has two sides: the player to move at the root, and all others, who are taken to play
against it (the paranoid tree of games of more than two players, Sturtevant and Korf, "On Pruning
Techniques for Multi-Player Games", 2000; with two players, the game itself). A value belongs to the
side to move where it is read, and is read off the root player's share. So a child's value counts
positive for its parent when the same side moves again (two placements running, Red's first move
after setup, a skipped opponent) and negative when the turn passes between the sides.

B boards, A slots, P players.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx

from train.network import MASKED, Network, slot_logits
from wallgo_jax import observation
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import Position, State, Variant

SAME_SIDE, OTHER_SIDE, GAME_OVER = 1.0, -1.0, 0.0
"""Discounts of a step, by who moves after it."""


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Options of the search; those of the other kind are idle.

    Attributes:
      simulations: simulations a move.
      considered: gumbel: most actions that sequential halving starts from at the root.
      kind: `gumbel` or `puct`.
      c_init: puct: weight of the prior against the value.
      c_base: puct: visits at which that weight has grown by log 2.
      dirichlet_fraction: puct: share of noise in the root's prior in self-play.
      dirichlet_alpha: puct: of each legal slot; 10 over the usual number of legal moves, which is
        about 60.
      temperature: puct: in self-play a move is drawn with chances as visits to the power of
        1 / temperature; 0 for the most visited.
      temperature_plies: puct: plies of a game that are drawn so, after which the most visited is
        played; 0 for all.
      first_simulations: simulations a move of the first iterations of self-play (see `stages`); 0
        for `simulations` from the start.
    """

    simulations: int = 16
    considered: int = 16
    kind: str = "gumbel"
    c_init: float = 1.25
    c_base: float = 19652.0
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float = 0.17
    temperature: float = 1.0
    temperature_plies: int = 0
    first_simulations: int = 0

    def __post_init__(self) -> None:
        if self.simulations < 1 or self.considered < 1:
            raise ValueError("simulations and considered must be at least 1")
        if self.kind not in _MAKERS:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(_MAKERS)}")
        if not 0 <= self.c_init < float("inf") or not 0 < self.c_base < float("inf"):
            raise ValueError("c_init must be a number from 0 on, c_base a positive one")
        if not 0 <= self.dirichlet_fraction <= 1:
            raise ValueError("dirichlet_fraction must be from 0 to 1")
        if not 1e-3 <= self.dirichlet_alpha <= 1e3:
            raise ValueError("dirichlet_alpha must be from 0.001 to 1000")
        if self.temperature != 0 and not 0.01 <= self.temperature <= 100:
            raise ValueError("temperature must be 0 or from 0.01 to 100")
        if self.temperature_plies < 0:
            raise ValueError("temperature_plies must not be negative")
        if not 0 <= self.first_simulations <= self.simulations:
            raise ValueError("first_simulations must be from 0 to simulations")


def stages(config: SearchConfig) -> tuple[int, ...]:
    """Simulations a move of the stages of a run: the first doubled until the last is reached.

    A progressive simulation as in Wu et al., "MiniZero: Comparative Analysis of AlphaZero and
    MuZero on Go, Othello, and Atari Games" (2023), of few values: each is a program of its own.
    """
    count, grown = config.first_simulations or config.simulations, []
    while count < config.simulations:
        grown.append(count)
        count *= 2
    return (*grown, config.simulations)


def simulations_at(config: SearchConfig, iteration: int, iterations: int) -> int:
    """Simulations a move in an iteration of a run whose stages are of equal length."""
    grown = stages(config)
    return grown[min(iteration * len(grown) // iterations, len(grown) - 1)]


class Judgement(NamedTuple):
    """What an evaluator says of a batch of states."""

    logits: jax.Array  # float32[B, A], MASKED at illegal slots
    value: jax.Array  # float32[B, P], expected reward of each player, the one to move first


Evaluator = Callable[[Any, State], Judgement]
"""(variables, states [B]) -> Judgement."""


class SearchResult(NamedTuple):
    """What a search found."""

    slot: jax.Array  # int32[B], the chosen action
    policy: jax.Array  # float32[B, A], to be learned, 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    surprise: jax.Array  # float32[B], nats: divergence of the policy from the evaluator's


Search = Callable[[Any, State, jax.Array], SearchResult]
"""(variables, states [B], key) -> SearchResult."""


def make_evaluator(network: Network, *, grid: int, planes: str, has_playable: bool) -> Evaluator:
    """Look at states through a network."""

    def evaluate(variables: Any, states: State) -> Judgement:
        view = jax.vmap(
            lambda state: observation.observe(
                state, grid=grid, planes=planes, has_playable=has_playable
            )
        )(states)
        output = network.evaluate(variables, view)
        return Judgement(jax.vmap(slot_logits)(output.policy, states), output.value)

    return evaluate


def make_search(evaluate: Evaluator, config: SearchConfig, *, grid: int, explores: bool) -> Search:
    """A search as a function of (variables, states [B], key).

    Args:
      evaluate: judges leaves and roots.
      config: options of the search.
      grid: side length of the grid.
      explores: with the noise of self-play; else the strongest move.
    """
    choose = _MAKERS[config.kind](config, explores=explores)
    recurrent_fn = make_recurrent_fn(evaluate, grid=grid)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        chex.assert_rank(states.position.player, 1)
        root = evaluate(variables, states)
        legal = jax.vmap(lambda state: actions.legal_slots(state, grid=grid))(states)
        slot, policy, tree = choose(
            key,
            mctx.RootFnOutput(
                prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                value=root.value[:, 0],  # pyright: ignore[reportCallIssue]
                embedding=states.position,  # pyright: ignore[reportCallIssue]
            ),
            states.position.ply,
            params=(variables, states.variant, states.position.player),
            recurrent_fn=recurrent_fn,
            invalid_actions=~legal,
        )
        return SearchResult(
            jnp.asarray(slot),
            jnp.asarray(policy),
            jnp.asarray(tree.summary().value),
            divergence(jnp.asarray(policy), root.logits),
        )

    return search


def _make_gumbel(config: SearchConfig, *, explores: bool) -> Callable[..., Any]:
    """(key, root, ply [B], **game) -> (slot [B], improved policy [B, A], tree)."""

    def choose(key: jax.Array, root: Any, ply: jax.Array, **game: Any) -> tuple[Any, Any, Any]:
        del ply
        found = mctx.gumbel_muzero_policy(
            rng_key=key,
            root=root,
            num_simulations=config.simulations,
            max_num_considered_actions=config.considered,
            gumbel_scale=float(explores),
            **game,
        )
        return found.action, found.action_weights, found.search_tree

    return choose


def _make_puct(config: SearchConfig, *, explores: bool) -> Callable[..., Any]:
    """(key, root, ply [B], **game) -> (slot [B], shares of visits [B, A], tree)."""
    fraction = config.dirichlet_fraction if explores else 0.0
    temperature = config.temperature if explores else 0.0
    select = functools.partial(
        mctx.muzero_action_selection, pb_c_init=config.c_init, pb_c_base=config.c_base
    )

    def choose(key: jax.Array, root: Any, ply: jax.Array, **game: Any) -> tuple[Any, Any, Any]:
        slot_key, noise_key, search_key = jax.random.split(key, 3)
        prior, legal = root.prior_logits, ~game["invalid_actions"]
        if fraction > 0:
            noise = dirichlet(noise_key, legal, alpha=config.dirichlet_alpha)
            root = root.replace(prior_logits=mix(prior, noise, legal, fraction=fraction))
        # `mctx.muzero_policy` without its noise, which falls on illegal slots as well, whose share
        # is lost; switched off it would still be drawn.
        tree = mctx.search(
            rng_key=search_key,
            root=root,
            num_simulations=config.simulations,
            root_action_selection_fn=functools.partial(select, depth=0),
            interior_action_selection_fn=select,
            **game,
        )
        summary = tree.summary()
        visits = jnp.asarray(summary.visit_counts)
        slot = most_visited(visits, prior)
        if temperature > 0:
            drawn = draw_visited(slot_key, visits, temperature=temperature)
            is_late = (config.temperature_plies > 0) & (ply >= config.temperature_plies)
            slot = jnp.where(is_late, slot, drawn)
        return slot, summary.visit_probs, tree

    return choose


_MAKERS = {"gumbel": _make_gumbel, "puct": _make_puct}


def dirichlet(key: jax.Array, legal: jax.Array, *, alpha: float) -> jax.Array:
    """float32[B, A]: a symmetric Dirichlet distribution over the legal slots bool[B, A] alone."""
    # In logs: the gamma variates of a small alpha underflow.
    logs = jax.random.loggamma(key, alpha, legal.shape, jnp.float32)
    return jax.nn.softmax(logs, axis=-1, where=legal)


def mix(logits: jax.Array, noise: jax.Array, legal: jax.Array, *, fraction: float) -> jax.Array:
    """float32[B, A] logits of a policy of which noise takes the place of a fraction."""
    mixed = (1 - fraction) * jax.nn.softmax(logits, axis=-1) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, jnp.finfo(mixed.dtype).tiny)), MASKED)


def most_visited(visits: jax.Array, prior: jax.Array) -> jax.Array:
    """int32[B]: the slot of the most visits int32[B, A]; of several, the likeliest by its prior."""
    order = visits + 0.5 * jax.nn.softmax(prior, axis=-1)
    return order.argmax(axis=-1).astype(jnp.int32)


def draw_visited(key: jax.Array, visits: jax.Array, *, temperature: float) -> jax.Array:
    """int32[B]: a slot each, with chances as visits int32[B, A] to the power 1 / temperature."""
    logits = jnp.where(visits > 0, jnp.log(jnp.maximum(visits, 1)) / temperature, MASKED)
    return jax.random.categorical(key, logits).astype(jnp.int32)


def divergence(policy: jax.Array, logits: jax.Array) -> jax.Array:
    """float32[B] nats: Kullback and Leibler's, of a policy [B, A] from logits [B, A]."""
    own = jnp.log(jnp.maximum(policy, jnp.finfo(policy.dtype).tiny))
    nats = (policy * (own - jax.nn.log_softmax(logits, axis=-1))).sum(axis=-1)
    return jnp.maximum(nats, 0.0)


def make_recurrent_fn(evaluate: Evaluator, *, grid: int) -> Callable[..., Any]:
    """mctx's model of the game: the exact rules, judged by the evaluator."""

    def recurrent(
        params: tuple[Any, Variant, jax.Array], key: jax.Array, slot: jax.Array, position: Position
    ) -> tuple[Any, Position]:
        del key
        variables, variant, root = params
        states, rewards = jax.vmap(lambda state, s: referee.play(state, s, grid=grid))(
            State(variant, position), slot
        )
        after = states.position
        judgement = evaluate(variables, states)
        share = value_of(judgement.value, after.player, root) * side_of(after.player, root)
        output = mctx.RecurrentFnOutput(
            reward=referee.reward_of(rewards, root) * side_of(position.player, root),  # pyright: ignore[reportCallIssue]
            discount=discount_of(position.player, after, root),  # pyright: ignore[reportCallIssue]
            prior_logits=judgement.logits,  # pyright: ignore[reportCallIssue]
            value=jnp.where(after.terminated, 0.0, share),  # pyright: ignore[reportCallIssue]
        )
        return output, after

    return recurrent


def value_of(value: jax.Array, mover: jax.Array, player: jax.Array) -> jax.Array:
    """float32[B]: one player's share of float32[B, P] values, which begin with the mover's."""
    players = value.shape[1]
    return referee.reward_of(value, (player - mover) % players)


def side_of(player: jax.Array, root: jax.Array) -> jax.Array:
    """float32[B]: 1 where a player is the root's, -1 where it is one of the others."""
    return jnp.where(player == root, 1.0, -1.0)


def discount_of(mover: jax.Array, after: Position, root: jax.Array) -> jax.Array:
    """float32[B]: how a value after the step counts for the side that made it."""
    same = (after.player == root) == (mover == root)
    return jnp.where(after.terminated, GAME_OVER, jnp.where(same, SAME_SIDE, OTHER_SIDE))
