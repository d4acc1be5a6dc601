"""Targets of samples, and the losses of a network's output against them.

N samples, A slots, P players counted from the one to move, H W cells.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.data import outcomes
from train.data.best_slots import BestSlots, spread_out
from train.data.replay import Sample
from train.game import (
    Position,
    State,
    in_setup,
    legal_slots,
    to_mask,
    turn_masks,
    turn_policy,
    turn_state,
)
from train.learning.config import LossWeights
from train.network import Output, reply_logits, slot_logits


class ReplyTargets(NamedTuple):
    """The plies after samples [N], turned as these are; junk where `exists` is False."""

    position: Position
    policy: jax.Array  # float32[N, A], and the rest, as in `TrainingTargets`
    policy_rest: jax.Array  # float32[N]
    policy_weight: jax.Array  # float32[N]
    exists: jax.Array  # bool[N], whether the game went on


class TrainingTargets(NamedTuple):
    """Samples [N], turned, with the targets of each.

    Players are numbered in order of turn, from the player to move.

    Attributes:
      states: the positions.
      legal: bool[N, A], the legal slots.
      policy: float32[N, A], the search's, over slots; 0 where the replay keeps a sum alone.
      policy_rest: float32[N], that sum, the share of the legal slots that have 0 in `policy`.
      policy_weight: float32[N], 0 where the policy is not learned.
      outcome: float32[N, P], final rewards.
      root_value: float32[N], the search's, for the mover; NaN where it has none.
      owner: int32[N, H, W], of each cell at the end of the game, P for nobody.
      on_board: bool[N, H, W], the cells of the board in its grid.
      margin: float32[N], the mover's final lead over the best other, in boards.
      reply: the next ply, turned as the samples are.
    """

    states: State
    legal: jax.Array
    policy: jax.Array
    policy_rest: jax.Array
    policy_weight: jax.Array
    outcome: jax.Array
    root_value: jax.Array | None
    owner: jax.Array
    on_board: jax.Array
    margin: jax.Array
    reply: ReplyTargets | None


class Losses(NamedTuple):
    """Means over samples, float32[]; None where the network has no such head.

    Figures of policies are weighted means: a policy of weight 0 is not learned and does not change
    the mean of the others.
    """

    loss: jax.Array  # the weighted sum
    policy_loss: jax.Array  # nats
    value_loss: jax.Array
    accuracy: jax.Array  # share of learned policies whose likeliest slot is the target's
    ownership_loss: jax.Array | None  # nats a cell
    ownership_constant: jax.Array | None
    """The loss of one distribution for every cell: the entropy of the owners' frequencies."""
    ownership_error: jax.Array | None
    """Squared error of the expected owner, 1 for the mover's cell, -1 another's, 0 nobody's."""
    margin_loss: jax.Array | None
    reply_loss: jax.Array | None  # nats, over the samples that have a next ply, by its weight
    custom_loss: jax.Array | None  # the term of your own function


def make_targets(sample: Sample, turn: jax.Array) -> TrainingTargets:
    """Make the targets of samples [N], each under its own symmetry int[N]."""
    return jax.vmap(_targets_of)(sample, turn)


def _targets_of(sample: Sample, turn: jax.Array) -> TrainingTargets:
    chex.assert_rank(sample.policy.share, 1)
    variant, player = sample.variant, sample.position.player
    grid = variant.grid.side
    board = to_mask(variant.playable, grid)
    owned = turn_masks(to_mask(sample.outcome.owned, grid), turn, variant)
    owned = outcomes.from_mover(owned, player)
    reply = None
    next_ply = sample.reply
    if next_ply is not None:
        after, policy, rest = _turn(State(variant, next_ply.position), next_ply.policy, turn)
        reply = ReplyTargets(after.position, policy, rest, next_ply.policy_weight, next_ply.exists)
    state, policy, rest = _turn(State(variant, sample.position), sample.policy, turn)
    return TrainingTargets(
        states=state,
        legal=legal_slots(state),
        policy=policy,
        policy_rest=rest,
        policy_weight=sample.policy_weight,
        outcome=outcomes.from_mover(sample.outcome.rewards, player),
        root_value=sample.root_value,
        owner=outcomes.owners_of(owned).reshape(grid, grid),
        on_board=board.reshape(grid, grid),
        margin=outcomes.margin_of(owned, board),
        reply=reply,
    )


def _turn(state: State, policy: BestSlots, turn: jax.Array) -> tuple[State, jax.Array, jax.Array]:
    """The turned state, policy float32[A] and its rest float32[]."""
    spread = spread_out(policy, state.num_slots).astype(jnp.float32)
    turned = turn_policy(spread, turn, in_setup(*state), state.variant)
    return turn_state(state, turn), turned, policy.rest.astype(jnp.float32)


def losses(
    output: Output,
    targets: TrainingTargets,
    weights: LossWeights,
    *,
    value_mix: float | None = None,
) -> Losses:
    """The losses of a network's output against the targets, and their weighted sum.

    Args:
      output: of the network, for samples [N].
      targets: of the samples.
      weights: of the heads' losses.
      value_mix: as in `LearnerConfig`; not read where the targets have no value of a search.
    """
    logits = jax.vmap(slot_logits)(output.policy, targets.states, targets.legal)
    weight = targets.policy_weight
    nats = policy_cross_entropy(logits, targets.policy, targets.policy_rest, targets.legal)
    policy_loss = weighted_mean(nats, weight)
    value_loss = _value_loss(output, targets, value_mix)
    agrees = logits.argmax(axis=-1) == targets.policy.argmax(axis=-1)
    accuracy = weighted_mean(agrees, weight > 0)
    total = weights.policy * policy_loss + weights.value * value_loss
    ownership = constant = error = margin = reply = None
    if output.ownership is not None:
        ownership, constant, error = _ownership_losses(output.ownership, targets)
        total += weights.ownership * ownership
    if output.margin is not None:
        margin = jnp.square(output.margin - targets.margin).mean()
        total += weights.margin * margin
    if output.reply is not None and targets.reply is not None:
        reply = _reply_loss(output.reply, targets.states, targets.reply)
        total += weights.reply * reply
    return Losses(
        total, policy_loss, value_loss, accuracy, ownership, constant, error, margin, reply, None
    )


def cross_entropy(logits: jax.Array, target: jax.Array) -> jax.Array:
    """[...] nats of float[..., D] logits against distributions float[..., D].

    A target of 0 costs nothing, even where the logit is MASKED.
    """
    return -(target * jax.nn.log_softmax(logits, axis=-1)).sum(axis=-1)


def policy_cross_entropy(
    logits: jax.Array, policy: jax.Array, rest: jax.Array, legal: jax.Array
) -> jax.Array:
    """float32[N], nats of policies of which some slots are known, and of the others their sum.

    The slots of the sum count as one: -sum_s p(s) log q(s) - rest log sum_o q(o), over slots s
    that are known and legal slots o that have 0 in `policy`. So the loss teaches how likely they
    are together, and leaves to the network how they share that. A Gumbel search gives the actions
    that it did not visit shares in proportion to the network's own (Danihelka et al., "Policy
    improvement by planning with Gumbel", section 4), of which there is nothing to learn. It equals
    the cross-entropy of the whole policy where `rest` is 0, and in its gradient where the network
    shares as the search did.

    Args:
      logits: float32[N, A], MASKED at illegal slots.
      policy: float32[N, A].
      rest: float32[N].
      legal: bool[N, A].
    """
    log_chances = jax.nn.log_softmax(logits, axis=-1)
    known = -(policy * log_chances).sum(axis=-1)
    others = legal & (policy == 0)
    has_rest = (rest > 0) & others.any(axis=-1)
    # Where nothing is left, the logarithm of nothing must not reach the gradient.
    others = others | ~has_rest[:, None]
    together = jax.nn.logsumexp(log_chances, axis=-1, where=others)
    return known - jnp.where(has_rest, rest * together, 0.0)


def weighted_mean(x: jax.Array, weight: jax.Array) -> jax.Array:
    """float32[], the mean of [N] numbers by weights [N] >= 0; 0 where all weights are 0."""
    return (weight * x).sum() / jnp.maximum(weight.sum(), 1e-9)


def _value_loss(output: Output, targets: TrainingTargets, value_mix: float | None) -> jax.Array:
    root_value = targets.root_value
    if output.result is None:
        target = targets.outcome
        if root_value is not None and value_mix is not None:
            target = mix_rewards(target, root_value, value_mix)
        return jnp.square(output.value - target).mean()
    result = jax.vmap(outcomes.winner_of)(targets.outcome)
    chances = jax.nn.one_hot(result, output.result.shape[-1])
    if root_value is not None and value_mix is not None:
        chances = mix_chances(chances, root_value, value_mix)
    return cross_entropy(output.result, chances).mean()


def mix_rewards(outcome: jax.Array, root_value: jax.Array, share: float) -> jax.Array:
    """float32[N, P]: rewards of which a share is the search's.

    Of two players the other loses what the mover wins. Beyond two, a search knows the value of the
    mover alone, and the others keep their rewards.

    Args:
      outcome: float32[N, P], rewards, the mover's first.
      root_value: float32[N], the search's, for the mover; NaN where it has none.
      share: of the search's value.
    """
    chex.assert_shape(root_value, outcome.shape[:1])
    mover = jnp.where(jnp.isnan(root_value), outcome[:, 0], root_value)[:, None]
    others = -mover if outcome.shape[1] == 2 else outcome[:, 1:]
    return (1 - share) * outcome + share * jnp.concatenate([mover, others], axis=1)


def mix_chances(chances: jax.Array, root_value: jax.Array, share: float) -> jax.Array:
    """float32[N, 3]: chances of the mover's win, the other's win and a draw, of which a share is
    the search's: those of its value without draws.

    Args:
      chances: float32[N, 3], of two players.
      root_value: as in `mix_rewards`.
      share: of the search's value.
    """
    chex.assert_shape(chances, (*root_value.shape, 3))
    win = (1 + jnp.clip(root_value, -1.0, 1.0)) / 2
    searched = jnp.stack([win, 1 - win, jnp.zeros_like(win)], axis=-1)
    searched = jnp.where(jnp.isnan(root_value)[:, None], chances, searched)
    return (1 - share) * chances + share * searched


def _ownership_losses(
    logits: jax.Array, targets: TrainingTargets
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Cross-entropy, that of a constant, and the squared error; means over the boards' cells."""
    owners = jax.nn.one_hot(targets.owner, logits.shape[-1])  # [N, H, W, P + 1]
    cells = targets.on_board.sum()

    def mean(x: jax.Array) -> jax.Array:
        on_board = targets.on_board.reshape(targets.on_board.shape + (1,) * (x.ndim - 3))
        return (x * on_board).sum(axis=(0, 1, 2)) / cells

    frequency = mean(owners)
    constant = -(frequency * jnp.log(jnp.maximum(frequency, 1e-9))).sum()
    expected = _signed(jax.nn.softmax(logits, axis=-1)) - _signed(owners)
    return mean(cross_entropy(logits, owners)), constant, mean(jnp.square(expected))


def ownership_errors(logits: jax.Array, targets: TrainingTargets) -> jax.Array:
    """float32[N]: the squared error of the expected owner, the mean over the cells of a board; from
    0 to 4 for two players."""
    owners = jax.nn.one_hot(targets.owner, logits.shape[-1])
    errors = jnp.square(_signed(jax.nn.softmax(logits, axis=-1)) - _signed(owners))
    on_board = targets.on_board
    return (errors * on_board).sum(axis=(1, 2)) / on_board.sum(axis=(1, 2))


def _signed(owners: jax.Array) -> jax.Array:
    """[...]: the mover's share of float[..., P + 1] less all other players'."""
    return 2 * owners[..., 0] - owners[..., :-1].sum(axis=-1)


def _reply_loss(planes: jax.Array, states: State, reply: ReplyTargets) -> jax.Array:
    after = State(states.variant, reply.position)
    logits = jax.vmap(reply_logits)(planes, after)
    legal = jax.vmap(legal_slots)(after)
    nats = policy_cross_entropy(logits, reply.policy, reply.policy_rest, legal)
    return weighted_mean(jnp.where(reply.exists, nats, 0.0), reply.exists * reply.policy_weight)
