"""Finished games of record files as positions to learn from, on the device.

G games, L plies of the longest, N positions, A slots.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.data.best_slots import KEPT, BestSlots, all_on
from train.data.outcomes import Outcome
from train.data.replay import NextPly, Sample
from train.game import (
    NO_ACTION,
    Position,
    Rules,
    State,
    Variant,
    in_int32,
    initial_position,
    is_legal,
    make_variant,
    name_of,
    owned_cells,
    slot_of_action,
    step,
)
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import reading
from train.runtime.host import fetch, in_batches
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record

_GAMES_AT_ONCE = 256
_POSITIONS_AT_ONCE = 4096


class Examples(NamedTuple):
    """Positions of finished games, game after game."""

    variant: Variant  # [G]
    outcome: Outcome  # [G]
    position: Position  # [N], before each ply
    slot: jax.Array  # int16[N], what was played
    game: jax.Array  # int32[N]
    policy: BestSlots  # [N], to learn: what a search said, else all on the slot that was played
    value: jax.Array  # float32[N], the search's, for the player to move; NaN where it said none


class RecordedPositions(NamedTuple):
    """Positions of recorded games on the device: those to learn, and those to check on."""

    examples: Examples
    learned: jax.Array  # int32[M]
    held_back: jax.Array  # int32[C, n], whole batches of those to check on

    def sample(self, key: jax.Array, size: int, *, has_reply: bool, td_steps: int = 0) -> Sample:
        """Draw positions to learn with replacement; the key is consumed."""
        count = self.learned.shape[0]
        index = self.learned[jax.random.randint(key, (size,), 0, count, jnp.int32)]
        return take(self.examples, index, has_reply=has_reply, td_steps=td_steps)


class RecordedGames(NamedTuple):
    """Records and the places in files that errors name."""

    records: tuple[Record, ...]
    places: tuple[str, ...]  # `FILE, game N`


SHAPE = ("size", "players", "stones")
"""Keys of rules that decide the shapes of a game's arrays."""


def read_recorded_games(
    paths: Sequence[Path], rules: Rules | None = None, *, keys: Sequence[str] = SHAPE
) -> RecordedGames:
    """Read the finished games of record files; unfinished ones are left out.

    Args:
      paths: the files.
      rules: that the games must fit; None for those of the first game.
      keys: of the rules, in which they must agree; empty for all.

    Raises:
      UsageError: a file cannot be read, a game does not fit the rules, or none is finished.
    """
    finished, places = [], []
    for path in paths:
        with usage_errors(), reading(path):
            for number, record in enumerate(records.read(path), start=1):
                rules, place = rules or record.rules, f"{path}, game {number}"
                check_rules(record, rules, place, keys=keys)
                if record.result is not None:
                    finished.append(record)
                    places.append(place)
    if not finished:
        raise UsageError(f"no finished game in {', '.join(map(str, paths)) or 'no file'}")
    return RecordedGames(tuple(finished), tuple(places))


def check_rules(record: Record, rules: Rules, place: str, *, keys: Sequence[str] = ()) -> None:
    """Refuse a game by other rules, or on a grid larger than their board, with a UsageError; the
    rules are compared in some keys, or in all."""
    its, wanted = record.rules.to_dict(), rules.to_dict() | {"grid": rules.size}
    its["grid"] = record.grid or record.rules.size
    for key in (*keys, "grid") if keys else wanted:
        if its[key] != wanted[key]:
            raise UsageError(
                f"{place}: its rules ({name_of(record.rules)}) have {key} {its[key]}, not "
                f"{wanted[key]}"
            )


def make_examples(recorded: RecordedGames) -> Examples:
    """Replay the games and keep every position.

    Raises:
      UsageError: an action is not allowed, or a result is not the referee's: which game and ply.
    """
    variants = [make_variant(record.rules) for record in recorded.records]
    variant = jax.tree.map(lambda *x: np.stack(x), *variants)
    parts, plies = [], max(record.rules.max_plies for record in recorded.records)
    for first in range(0, len(recorded.records), _GAMES_AT_ONCE):
        chosen = np.arange(first, min(first + _GAMES_AT_ONCE, len(recorded.records)))
        parts.append(_replayed(recorded, variant, chosen, plies=plies))
    outcome, position, slot, game = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    policy, value = _searched(recorded, State(variant, position), slot, game)
    examples = Examples(variant, outcome, position, slot, game, policy, value)
    return jax.tree.map(jnp.asarray, examples)


def _searched(
    recorded: RecordedGames, states: State, slot: np.ndarray, game: np.ndarray
) -> tuple[BestSlots, jax.Array]:
    """The policies and values of positions [N] of variants [G], as the fields of `Examples`."""
    first = np.searchsorted(game, np.arange(len(recorded.records)))
    value = np.full(len(game), np.nan, np.float32)
    for start, record in zip(first, recorded.records, strict=True):
        if record.values is not None:
            value[start : start + len(record.values)] = np.array(record.values, np.float32)
    if not any(record.searches for record in recorded.records):
        return all_on(jnp.asarray(slot)), jnp.asarray(value)
    table = np.full((len(game), KEPT), NO_ACTION, np.int32)
    share = np.zeros((len(game), KEPT), np.float16)
    for start, record in zip(first, recorded.records, strict=True):
        searches = record.searches or (None,) * len(record.actions)
        for place, (action, found) in enumerate(zip(record.actions, searches, strict=True), start):
            best = [(1.0, action)]
            if found is not None and found.actions:
                best = sorted(zip(found.shares, found.actions, strict=True), reverse=True)[:KEPT]
            share[place, : len(best)] = [share for share, _ in best]
            table[place, : len(best)] = [
                in_int32(action, grid=record.rules.size) for _, action in best
            ]
    of_positions = State(jax.tree.map(lambda x: x[game], states.variant), states.position)
    slots, allowed = in_batches(_slots_of, (of_positions, table), _POSITIONS_AT_ONCE)
    is_wrong = ~(allowed | (table == NO_ACTION)).all(axis=1)
    if is_wrong.any():
        place = int(is_wrong.argmax())
        number = int(game[place])
        raise UsageError(
            f"{recorded.places[number]}: searches: entry {place - int(first[number]) + 1} has an "
            "action that is not allowed"
        )
    slots = np.where(table == NO_ACTION, 0, slots).astype(np.int16)
    rest = np.maximum(1 - share.sum(axis=1, dtype=np.float32), 0).astype(np.float16)
    return BestSlots(*map(jnp.asarray, (slots, share, rest))), jnp.asarray(value)


@jax.jit
def _slots_of(asked: tuple[State, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The slots int32[N, K] of public actions, and bool[N, K], whether they are allowed."""
    states, actions = asked
    slots = jax.vmap(jax.vmap(slot_of_action, (None, 0)))(states, actions)
    return slots, jax.vmap(jax.vmap(is_legal, (None, 0)))(states, slots)


def _replayed(
    recorded: RecordedGames, variant: Variant, chosen: np.ndarray, *, plies: int
) -> tuple[Outcome, Position, np.ndarray, np.ndarray]:
    """Replay some games, padded to the numbers of games and of plies that one program replays;
    returns the fields of their `Examples` after the variant."""
    filled = chosen[np.arange(_GAMES_AT_ONCE) % len(chosen)]
    table = np.full((_GAMES_AT_ONCE, plies), NO_ACTION, np.int32)
    for row, game in enumerate(filled):
        record = recorded.records[game]
        played = record.actions[:plies]
        table[row, : len(played)] = [in_int32(action, grid=record.rules.size) for action in played]
    some = jax.tree.map(lambda x: x[filled], variant)
    outcome, over, position, slot = fetch(_replay(some, table.T))
    for row, game in enumerate(chosen):
        result = recorded.records[game].result
        if not over[row] or not np.allclose(outcome.rewards[row], result, atol=1e-3):
            _complain(recorded, int(game))
    ply, row = np.nonzero(table.T[:, : len(chosen)] != NO_ACTION)
    order = np.lexsort((ply, row))
    ply, row = ply[order], row[order]
    return (
        jax.tree.map(lambda x: x[: len(chosen)], outcome),
        jax.tree.map(lambda x: x[ply, row], position),
        slot[ply, row].astype(np.int16),
        chosen[row].astype(np.int32),
    )


def _complain(recorded: RecordedGames, game: int) -> None:
    with usage_errors(recorded.places[game]):
        records.replay(recorded.records[game])
    raise UsageError(f"{recorded.places[game]}: has plies after its end")


@jax.jit
def _replay(variant: Variant, table: jax.Array) -> tuple[Outcome, jax.Array, Position, jax.Array]:
    """Replay games [G] from public actions [L, G].

    Returns:
      Outcomes [G]; bool[G], whether the game is over and no ply was illegal; positions and slots
      [L, G].
    """

    def ply(carry: tuple[State, jax.Array, jax.Array], action: jax.Array):
        state, rewards, is_sound = carry
        acts = action != NO_ACTION
        slot = slot_of_action(state, action)
        allowed = is_legal(state, slot) & ~state.position.terminated
        after, step_outcome = step(state, slot)
        position = jax.tree.map(
            lambda new, old: jnp.where(acts, new, old), after.position, state.position
        )
        carry = (
            State(state.variant, position),
            rewards + jnp.where(acts, step_outcome, 0.0),
            is_sound & (allowed | ~acts),
        )
        return carry, (state.position, slot)

    def game(variant: Variant, played: jax.Array):
        state = State(variant, initial_position(variant))
        rewards = jnp.zeros(state.position.stones.shape[0], jnp.float32)
        (state, rewards, is_sound), plies = jax.lax.scan(
            ply, (state, rewards, jnp.bool_(True)), played
        )
        owned = owned_cells(state)
        return Outcome(rewards, owned), is_sound & state.position.terminated, *plies

    return jax.vmap(game, in_axes=(0, 1), out_axes=(0, 0, 1, 1))(variant, table)


def split(examples: Examples, *, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split positions, by whole games drawn at random, into those to learn and those held back.

    Args:
      examples: the positions.
      share: of the games that is held back, at least one.
      seed: of the draw.

    Returns:
      Indices int[n] of the positions to learn, and of those held back.

    Raises:
      UsageError: there are too few games for both.
    """
    game = np.asarray(fetch(examples.game))
    games = int(game[-1]) + 1
    held = max(round(share * games), 1)
    if held >= games:
        raise UsageError(f"too few finished games ({games}) to hold back {held} of them")
    is_held = np.zeros(games, bool)
    is_held[np.random.default_rng(seed).permutation(games)[:held]] = True
    return np.flatnonzero(~is_held[game]), np.flatnonzero(is_held[game])


def take(examples: Examples, index: jax.Array, *, has_reply: bool, td_steps: int = 0) -> Sample:
    """Make samples of positions int[n]; `td_steps` is as in `replay.sample`."""
    game = examples.game[index]
    last = examples.game.shape[0] - 1

    def at(place: jax.Array, field: Any) -> Any:
        return jax.tree.map(lambda x: x[place], field)

    reply = None
    if has_reply:
        after = jnp.minimum(index + 1, last)
        reply = NextPly(
            position=at(after, examples.position),
            policy=at(after, examples.policy),
            policy_weight=jnp.ones(index.shape, jnp.float32),
            exists=(examples.game[after] == game) & (after != index),
        )
    position = at(index, examples.position)
    later = jnp.minimum(index + td_steps, last)
    value = examples.value[later]
    value = jnp.where(examples.position.player[later] == position.player, value, -value)
    goes_on = (examples.game[later] == game) & (later == index + td_steps)
    return Sample(
        variant=at(game, examples.variant),
        position=position,
        policy=at(index, examples.policy),
        policy_weight=jnp.ones(index.shape, jnp.float32),
        root_value=jnp.where(goes_on, value, jnp.nan),
        outcome=at(game, examples.outcome),
        reply=reply,
    )
